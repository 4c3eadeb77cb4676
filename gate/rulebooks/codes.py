"""The meanings of the codes of rulebook errors, warnings, and analysis findings, and what an author does about each.

`docs/reference/rulebook-codes.md` is made from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Code(NamedTuple):
    """A code about a rulebook.

    Attributes:
        meaning: What it says, in sentences.
        action: The author's next step, in sentences; "" if the meaning says it.
        severity: How severe a finding is, in sentences; "" for errors and warnings.
    """

    meaning: str
    action: str = ""
    severity: str = ""


ERRORS: Final[Mapping[str, Code]] = {
    "required": Code("A required field is missing.", "Add it."),
    "unknown_field": Code(
        "The field does not exist here. The code also reports a misspelled name, a second form in one condition, and a "
        "`value` next to `exists` or `not_exists`.",
        "Correct its spelling, or remove it.",
    ),
    "type": Code(
        "The value has the wrong JSON type. The `value` of `in` and `not_in` must be an array.", "Correct the value."
    ),
    "enum": Code("The value is not one of the allowed values.", "Use one that the message lists."),
    "const": Code("The value must be one fixed value, such as that of `schema_version`.", "Use the stated value."),
    "pattern": Code("The text does not have the required form.", "Correct it."),
    "too_short": Code("The text is too short."),
    "too_long": Code(
        "The text is too long, the rulebook in a file takes more than 1 MiB, or its descriptions more than 64 KiB.",
        "Shorten it, or split the rulebook.",
    ),
    "too_few": Code("The list or object has too few items."),
    "too_many": Code("The list or object has too many items. On `rules`: all conditions together have too many nodes."),
    "too_small": Code("The number is too small."),
    "too_large": Code("The number is too large."),
    "too_deep": Code("The condition is nested too deeply.", "Flatten it, or split the rule."),
    "cases": Code("The file contains cases, not a rulebook.", "Give the rulebook's file."),
    "duplicate": Code("Two rules have the same id, or `required` lists a field twice.", "Rename or remove one."),
}
"""The codes of the errors that make a rulebook invalid."""

WARNINGS: Final[Mapping[str, Code]] = {
    "undeclared_field": Code(
        "A condition tests a field that the input schema neither declares nor requires. A misspelled field is absent "
        "from every request, so a blocking rule never blocks. Not reported with an adapter. A field below a declared "
        "object counts as declared, unless the schema declares other fields of that object.",
        "Correct the name, or declare the field in `input_schema.properties`.",
    ),
    "not_made_by_adapter": Code(
        "The trusted adapter never returns a field that the rulebook requires or tests.",
        "Use a field that `gate adapters show` lists.",
    ),
    "approves_without_facts": Code(
        "The rulebook says `yes` to a request without any facts, for example to one that misspells `context.inputs`. "
        "Not reported with an adapter.",
        "Require the facts that the rules read.",
    ),
    "approves_by_default": Code(
        "The default outcome says `yes`, so it approves all facts that no rule matches. A misspelled fact can cause "
        "that. Not reported with an adapter, or if `approves_without_facts` is.",
        "Let a rule approve, and let the default hold or block.",
    ),
    "equal_priorities": Code(
        "Rules with the same priority have different outcomes. The order of their ids decides which is tried first.",
        "Give them different priorities.",
    ),
    "contradictory_outcome": Code(
        "The verdict of an outcome reads as another decision, such as `BLOCK` with `yes`. Callers act on the decision. "
        "A verdict is read by its first word, or else by its last; a verdict of other words is not judged.",
        "Correct the decision or the verdict.",
    ),
    "approves_when_absent": Code(
        "A rule that says `yes` compares an optional field below a `not`. The comparison is false if the field is "
        "absent, so the rule can approve. Not reported with an adapter.",
        "Require the field, or test it with `exists` too.",
    ),
    "silent_when_absent": Code(
        "A rule that says `no` or `review` tests an optional field with `neq`, `not_in` or `not_contains`. Such a test "
        "is false if the field is absent, so the rule does not match. Tests below a `not` are not reported.",
        "Require the field, or add a rule with `not_exists`.",
    ),
    "never_holds": Code(
        "A test cannot hold: `gt`, `gte`, `lt` or `lte` with a value that is not a number, or a value that a field of "
        "the declared type cannot have.",
        "Correct the value, the operator or the declared type.",
    ),
    "always_holds": Code(
        "A `neq`, `not_in` or `not_contains` test holds for every value of the declared type.",
        "Correct the value or the declared type.",
    ),
    "unread_requirement": Code(
        "A required field is neither declared nor tested. Requests without it get `NEEDS_INPUT`. Not reported with an "
        "adapter.",
        "Correct its name, declare it, or remove it from `required`.",
    ),
    "output_material": Code(
        "The input schema has a field with a name that no request may use for a fact.", "Rename the field."
    ),
}
"""The codes of the warnings about valid rulebooks, as `find_warnings` gives them."""

CASE_WARNINGS: Final[Mapping[str, Code]] = {
    "unknown_fact": Code(
        "A case, or the file of `gate rulebook explain --facts`, has a fact that the rulebook neither declares nor "
        "tests. The rulebook treats it as absent.",
        "Correct its name, or remove it.",
    ),
    "never_occurs": Code(
        "No facts can meet the expectation of a case. It has an unknown rule, reason code, action, or verdict, or "
        "fields that no outcome has together. Or it expects a missing field that is not required, or an invalid field "
        "that is not declared.",
        "Correct the expectation.",
    ),
}
"""The codes of the warnings about cases of rulebooks."""

FINDINGS: Final[Mapping[str, Code]] = {
    "rule_never_matches": Code(
        "The condition of a rule holds for no valid facts. The message lists the tests that contradict each other.",
        "Correct the tests, or remove the rule.",
        "Danger if the rule says `no` or `review`, else a warning.",
    ),
    "rule_shadowed": Code(
        "A rule never matches because other rules always match before it. The message lists a smallest set of them.",
        "Give the rule a higher priority, or remove it.",
        "Danger if the rule says `no` or `review` and one of the others says `yes`, else a warning.",
    ),
    "equal_priorities_overlap": Code(
        "Two rules with the same priority and different outcomes hold for the same facts. The one whose id comes first "
        "decides.",
        "Give them different priorities.",
        "Danger if one of the two decisions is `yes` and the other is not. Else a note if their actions are the same, "
        "and a warning if not.",
    ),
    "silent_when_absent": Code(
        "A rule that says `no` or `review` tests an optional fact with `neq`, `not_in` or `not_contains`. If the fact "
        "is absent, the rule does not match, and the decision is another one.",
        "Require the fact, or add a test with `not_exists`.",
        "Danger if the other decision is `yes`, else a warning.",
    ),
    "approves_without_fact": Code(
        "Facts are approved without one of them, and not with some value of it. Not reported for a fact with a "
        "`silent_when_absent` danger.",
        "Require the fact, or let no rule approve without it.",
        "Danger.",
    ),
    "approves_wrong_type": Code(
        "Facts are approved because one of them, whose type is not declared, has a type that no test covers.",
        "Declare the type of the fact in `input_schema.properties`.",
        "Danger.",
    ),
    "undeclared_field": Code(
        "A condition tests a field that the input schema neither declares nor requires.",
        "Correct the name, or declare the field.",
        "Warning.",
    ),
    "test_always_true": Code(
        "A test is true whenever its rule is tried, so it decides nothing.",
        "Remove or correct the test.",
        "Warning. A note if rules before it match all other facts.",
    ),
    "test_always_false": Code(
        "A test is false whenever its rule is tried, so it decides nothing.",
        "Remove or correct the test.",
        "Warning. A note if rules before it match all other facts.",
    ),
    "falls_to_default": Code(
        "No rule matches for a region of facts, so the default outcome decides.",
        "Add a rule, or check that the default is right.",
        "Danger if the default outcome says `yes`, else a note.",
    ),
}
"""The kinds of findings of the analysis of all facts."""
