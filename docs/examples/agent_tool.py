"""An agent whose tools run only on a verified yes, and whose model reads why one did not.

A model asks for a tool by name, with arguments. Each tool is guarded: the gate decides over the arguments, and over
what the platform knows and the model cannot say of itself, such as approvals and change freezes. What the gate refuses
is a tool result like any other, with the verdict, the reason and the evidence, so that the model can plan again;
nothing is raised into the loop.

The intent is the task and the id of the tool call. A loop that is restarted from its transcript, or a transport that
delivers a call twice, runs the tool once.
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
    """What a model asks for.

    Attributes:
        call_id: The model's id of the call, another for every call of a task.
        name: The tool.
        arguments: The arguments: the model's word, and nothing more.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]


class Model(Protocol):
    """What plans."""

    async def next_call(self, transcript: Sequence[Result]) -> ToolCall | None:
        """The next call, given the results so far; None where the task is done."""


class Platform(Protocol):
    """What is known of a system, whatever a model says."""

    def facts(self, system: str, object_id: str) -> Mapping[str, Any]:
        """environment, change_freeze, data_classes, approvals, dry_run."""


Tool = Callable[[ToolCall], Awaitable[Result]]
Function = Callable[[ToolCall, AsyncPermit], Awaitable[str]]


class Toolbox:
    """The tools of one task."""

    def __init__(self, client: AsyncClient, platform: Platform, *, agent: str, task: str) -> None:
        """Takes the gate, what the platform knows, who acts, and the id of the task, which a restart keeps."""
        self._client = client
        self._platform = platform
        self._agent = agent
        self._task = task
        self._tools: dict[str, Tool] = {}

    def tool(self, kind: str, *, takes: Sequence[str], reversible: bool) -> Callable[[Function], Tool]:
        """Makes a function a tool of that name.

        Args:
            kind: The action kind, as the policy names it.
            takes: The arguments that the gate decides over, besides `system` and `object`, which every tool has.
            reversible: Whether what the tool does can be undone. Its author knows; the model is not asked.
        """

        def facts(call: ToolCall) -> Mapping[str, Any]:
            said = {name: call.arguments[name] for name in takes if name in call.arguments}
            known = self._platform.facts(call.arguments["system"], call.arguments["object"])
            # What is known goes last: the model cannot say that it was approved.
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
        """The result of a call, whatever became of it."""
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
        except Exception as error:  # noqa: BLE001 - a tool that fails is the model's to know, and does not end the loop
            return {**about, "status": "error", "why": f"{type(error).__name__}: {error}"}


async def run_task(model: Model, tools: Toolbox) -> Sequence[Result]:
    """Lets a model call tools until it is done; the transcript."""
    transcript: list[Result] = []
    while (call := await model.next_call(transcript)) is not None:
        transcript.append(await tools.call(call))
    return transcript


def _refusal(error: NotPermitted) -> Result:
    """Why a tool did not run, as the model reads it."""
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
