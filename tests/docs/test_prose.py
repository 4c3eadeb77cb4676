"""The checks of the prose find what the house does not write, and count what readers meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.tools.prose import grammar, style
from docs.tools.prose.counts import count, is_passive, sentences_of
from docs.tools.prose.texts import ROOT, Text, read

GUIDE = "docs/guides/example.md"


def page(markdown: str, path: str = GUIDE) -> Text:
    return Text(path, "page", markdown)


def found(markdown: str, path: str = GUIDE) -> list[tuple[int, str]]:
    return [(each.line, each.rule) for each in style.check(page(markdown, path))]


class TestStyle:
    @pytest.mark.parametrize(
        "sentence",
        [
            "The gate decides anew.",
            "What the key signs is trusted.",
            "Besides, the store keeps it.",
            "The version in force decides.",
            "The operator mends the file.",
            "The behaviour is the same.",
            "This is simply a check.",
        ],
    )
    def test_a_banned_construction_is_found_at_its_line(self, sentence: str) -> None:
        assert found(f"# Title\n\nA plain sentence.\n\n{sentence}\n") == [(5, "banned")]

    def test_code_is_not_read(self) -> None:
        assert found("Run `anew in force` now.\n\n```bash\necho anew\n```\n") == []

    def test_a_long_sentence_is_found(self) -> None:
        long = " ".join(["word"] * 31)
        assert found(f"{long}.\n") == [(1, "sentence")]
        assert found(f"{'Word ' * 30}. {'Word ' * 30}.\n") == []

    def test_the_first_use_of_a_term_needs_a_link_in_pages_that_teach(self) -> None:
        plain = "# The lake\n\nThe gate exports a lake.\n"
        assert found(plain) == [(3, "glossary")]
        assert found(plain, "docs/reference/example.md") == []
        assert found("# Lake\n\nIt exports a [lake](../glossary.md#lake). The lake is Parquet.\n") == []

    def test_an_acronym_needs_a_definition(self) -> None:
        assert found("The QXZ is fast.\n") == [(1, "term")]
        assert found("The API answers JSON.\n") == []

    def test_a_page_has_fewer_than_1500_words(self) -> None:
        assert found("Word. " * 1499 + "\n") == []
        assert found("Word. " * 1500 + "\n") == [(1, "page")]

    def test_a_generated_page_has_no_more_either(self) -> None:
        text = Text("docs/reference/example.md", "generated", "Word. " * 1500 + "\n")
        assert [each.rule for each in style.check(text)] == ["page"]

    def test_all_pages_together_have_at_most_60000_words(self) -> None:
        at_most = [page("word " * 1000) for _ in range(60)]
        assert list(style.check_total(at_most)) == []
        (finding,) = style.check_total([*at_most, page("word")])
        assert "60,001" in finding.message


class TestGrammar:
    def test_misspelling_and_grammar_are_found_at_their_lines(self) -> None:
        text = page("# Title\n\nThe gate keeps the recieved record.\n\nIt is a honest answer.\n")
        assert {(each.line, each.rule) for each in grammar.check([text])} == {(3, "SpellCheck"), (5, "AnA")}

    def test_the_words_of_the_house_and_addresses_are_none(self) -> None:
        text = page("See [Polars and DuckDB](https://qwrtz.example/xkcd.md) with PostgreSQL.\n")
        assert list(grammar.check([text])) == []


class TestCounts:
    def test_sentences_of_paragraphs_and_lists_are_counted_and_code_is_one_word(self) -> None:
        text = page(
            "# A heading\n\nOne two. Three `a b c` four.\n\n- Five six seven.\n\n| a | b |\n|---|---|\n| c | d |\n"
        )
        assert [sentence for _, sentence in sentences_of(text)] == [
            "One two.",
            "Three `a b c` four.",
            "Five six seven.",
        ]
        assert count([text]).mean == pytest.approx(8 / 3)

    def test_a_word_has_a_letter_or_a_digit(self) -> None:
        text = page("# Title\n\n| a | b |\n|---|---|\n| `c` | 4 |\n\n- Five.\n\n```text\nx = 1\n```\n")
        # Title, a, b, c, 4, Five, the language of the block, x, 1.
        assert text.words == 9

    def test_shares_are_of_all_sentences(self) -> None:
        text = page(f"The gate decides. {'Word ' * 31}. The record is signed. The gate signs it.\n")
        counts = count([text])
        assert (counts.sentences, counts.long, counts.passive) == (4, 0.25, 0.25)

    @pytest.mark.parametrize(
        ("sentence", "passive"),
        [
            ("The record is signed.", True),
            ("The record was not yet verified.", True),
            ("It is kept.", True),
            ("The gate signs the record.", False),
            ("They need it.", False),
            ("It is indeed plain.", False),
        ],
    )
    def test_the_passive_voice_is_told_by_its_form(self, sentence: str, passive: bool) -> None:
        assert is_passive(sentence) is passive


class TestTexts:
    def test_public_docstrings_are_read_at_their_lines_with_what_they_say_of_arguments(self, tmp_path: Path) -> None:
        file = tmp_path / "module.py"
        file.write_text(
            '"""A module."""\n\n\ndef shown(name: str) -> None:\n'
            '    """Shows it.\n\n    Args:\n        name: The name of it.\n    """\n\n\n'
            'def _hidden() -> None:\n    """Nobody reads this."""\n'
        )
        (text,) = read(file, tmp_path)
        assert [(block.line, block.text) for block in text.blocks] == [
            (1, "A module."),
            (5, "Shows it."),
            (8, "The name of it."),
        ]

    def test_the_cells_of_a_notebook_are_read_at_their_lines(self) -> None:
        (text,) = read(ROOT / "notebooks" / "effectiveness.py")
        assert text.kind == "notebook"
        lines = (ROOT / text.path).read_text().splitlines()
        for block in text.blocks:
            assert block.text.split()[0].strip("*`") in lines[block.line - 1]
