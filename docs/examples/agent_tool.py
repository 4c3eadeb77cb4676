"""An agent whose tools run only on a verified yes. If a tool does not run, the model reads why.

A model calls a tool by name, with arguments. Each tool is guarded: the gate decides on the arguments, and on facts from
the platform that the model cannot set, such as approvals and change freezes. A refusal is an ordinary tool result with
the verdict, the reason, and the evidence, so that the model can make a new plan. No refusal raises into the loop.

The intent consists of the task and the id of the tool call. If the loop restarts from its transcript, or a transport
delivers a call twice, the tool runs once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gate.client import AlreadyStarted, AsyncClient, AsyncPermit, GateError, GateUnavailable, NotPermitted, Target

POLICY: Final = "agent_action_policy@2026-09-01"

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call from a model.

    Attributes:
        call_id: The model's id of the call, unique in the task.
        name: The tool's name.
        arguments: The arguments, as the model claims them.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]


class Model(Protocol):
    """The model that plans the task."""

    async def next_call(self, transcript: Sequence[Result]) -> ToolCall | None:
        """Returns the next call, given the results so far, or None if the task is done."""


class Platform(Protocol):
    """Facts about systems that do not come from the model."""

    def facts(self, system: str, object_id: str) -> Mapping[str, Any]:
        """Returns environment, change_freeze, data_classes, approvals and dry_run."""


Tool = Callable[[ToolCall], Awaitable[Result]]
Function = Callable[[ToolCall, AsyncPermit], Awaitable[str]]


class Toolbox:
    """The tools of one task."""

    def __init__(self, client: AsyncClient, platform: Platform, *, agent: str, task: str) -> None:
        """Takes the client, the platform, the agent's id, and the task's id, which must survive a restart."""
        self._client = client
        self._platform = platform
        self._agent = agent
        self._task = task
        self._tools: dict[str, Tool] = {}

    def tool(self, kind: str, *, takes: Sequence[str], reversible: bool) -> Callable[[Function], Tool]:
        """Registers a function as a tool with the function's name.

        Args:
            kind: The action kind in the policy.
            takes: The arguments that the gate decides on, in addition to `system` and `object` of every tool.
            reversible: Whether the tool's effect can be undone. The author decides, not the model.
        """

        def facts(call: ToolCall) -> Mapping[str, Any]:
            said = {name: call.arguments[name] for name in takes if name in call.arguments}
            known = self._platform.facts(call.arguments["system"], call.arguments["object"])
            # The platform's facts come last, so that the model cannot claim an approval.
            return {"spend_eur": 0, **said, "action_kind": kind, "reversible": reversible, **known}

        def register(function: Function) -> Tool:
            @self._client.guarded(
                POLICY,
                facts=facts,
                action="run_agent_action",
                target=lambda call: Target(call.arguments["system"], call.arguments["object"], kind),
                intent=lambda call: f"{self._task}/{call.call_id}",
                context={"workflow": self._task, "actor": {"type": "agent", "id": self._agent}},
            )
            async def run(call: ToolCall, *, permit: AsyncPermit | None = None) -> Result:
                if permit is None:
                    raise TypeError("the decorator gives the permit")
                result = await function(call, permit)
                permit.describe(result=result, executor={"type": "agent", "id": self._agent})
                return {"status": "done", "result": result, "decision_id": permit.decision_id}

            self._tools[function.__name__] = run
            return run

        return register

    async def call(self, call: ToolCall) -> Result:
        """Runs a call and returns its result, also if it was refused or failed."""
        about = {"call_id": call.call_id, "tool": call.name}
        tool = self._tools.get(call.name)
        if tool is None:
            return {**about, "status": "error", "why": f"there is no tool {call.name!r}"}
        try:
            return {**about, **await tool(call)}
        except NotPermitted as error:
            return {**about, **_refusal(error)}
        except GateError as error:
            return {**about, "status": "error", "why": str(error)}
        except Exception as error:  # noqa: BLE001 - the model reads that a tool failed, and the loop continues
            return {**about, "status": "error", "why": f"{type(error).__name__}: {error}"}


async def run_task(model: Model, tools: Toolbox) -> Sequence[Result]:
    """Lets a model call tools until it is done, and returns the transcript."""
    transcript: list[Result] = []
    while (call := await model.next_call(transcript)) is not None:
        transcript.append(await tools.call(call))
    return transcript


def _refusal(error: NotPermitted) -> Result:
    """Tells the model why a tool did not run."""
    if isinstance(error, AlreadyStarted):
        known = error.execution or {}
        return {
            "status": "not run again",
            "ended": known.get("execution_status", "not known"),
            "result": known.get("execution_result"),
        }
    if isinstance(error, GateUnavailable):
        return {"status": "not decided", "why": error.code, "advice": "Nothing was done. Try this call again later."}
    record = error.record or {}
    return {
        "status": "not permitted",
        **{name: record.get(name) for name in ("verdict", "action", "reason_code", "evidence", "decision_id")},
    }
