"""Ways to spoil a good file: in its expectation, or in its script. The interpreter has to notice each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.scenario.files import OWN, scenario_files
from tests.scenario.vocabulary import Json
from tests.scenario.worlds import Mode

FILES = {file.label: file for folder in OWN for file in scenario_files(folder)}


@dataclass(frozen=True)
class Mutation:
    """``spoil`` makes the scenario ``file`` wrong; ``only_in`` virtual time where nothing but ``t`` is."""

    name: str
    file: str
    spoil: Callable[[Json], Any]
    only_in: Mode | None = None

    def spoiled(self) -> Json:
        scenario = FILES[self.file].load()
        before = json.dumps(scenario)
        self.spoil(scenario)
        assert json.dumps(scenario) != before, "the mutation changes nothing"
        return scenario


def events(scenario: Json, **having: Any) -> list[Json]:
    """The expected events with these fields."""
    every: list[Json] = scenario["expect"]["events"]
    return [event for event in every if having.items() <= event.items()]


def place(scenario: Json, **having: Any) -> int:
    return scenario["expect"]["events"].index(events(scenario, **having)[0])


def swap(items: list[Any], first: int, second: int) -> None:
    items[first], items[second] = items[second], items[first]


def later(item: Json) -> None:
    item["t"] += 1


VIRTUAL_ONLY = (
    Mutation("tick of an event", "tool-one", lambda s: later(s["expect"]["events"][5]), Mode.VIRTUAL),
    Mutation("tick of the last event", "tool-one", lambda s: later(s["expect"]["events"][-1]), Mode.VIRTUAL),
    Mutation("tick of a request", "tool-one", lambda s: later(s["expect"]["requests"][1]), Mode.VIRTUAL),
    Mutation("tick of a tool call", "tool-one", lambda s: later(s["expect"]["tool_calls"][0]), Mode.VIRTUAL),
    Mutation(
        "tick of a refusal", "prompt-while-busy", lambda s: later(s["expect"]["errors"][0]), Mode.VIRTUAL
    ),
    Mutation("a slower tool", "tool-one", lambda s: s["tools"][0]["steps"][0].update(after=2), Mode.VIRTUAL),
    Mutation("a slower model", "tool-one", lambda s: s["responses"][1].update(delay=2), Mode.VIRTUAL),
    Mutation("a slower delta", "tool-one", lambda s: s["responses"][1].update(every=2), Mode.VIRTUAL),
    Mutation(
        "a slower hook",
        "after-slow",
        lambda s: s["hooks"]["after_tool_call"][0].update(after=7),
        Mode.VIRTUAL,
    ),
    Mutation(
        "an abort a tick later", "abort-during-tool", lambda s: s["actions"][1].update(at=5), Mode.VIRTUAL
    ),
)

EVENTS = (
    Mutation("dropped event", "tool-one", lambda s: s["expect"]["events"].pop(7)),
    Mutation("dropped last event", "tool-one", lambda s: s["expect"]["events"].pop()),
    Mutation(
        "doubled event", "tool-one", lambda s: s["expect"]["events"].insert(7, s["expect"]["events"][7])
    ),
    Mutation("no events", "tool-one", lambda s: s["expect"].update(events=[])),
    Mutation("swapped events", "tool-one", lambda s: swap(s["expect"]["events"], 12, 13)),
    Mutation(
        "swapped ends of tools",
        "tool-parallel-order",
        lambda s: swap(
            s["expect"]["events"],
            place(s, type="tool_execution_end", tool_name="a"),
            place(s, type="tool_execution_end", tool_name="b"),
        ),
    ),
    Mutation("wrong delta", "text-one-delta", lambda s: events(s, update="text_delta")[0].update(delta="x")),
    Mutation(
        "wrong argument delta",
        "tool-args-in-deltas",
        lambda s: events(s, update="toolcall_delta")[1].update(delta=": 2"),
    ),
    Mutation(
        "wrong kind of update",
        "thinking-then-text",
        lambda s: events(s, update="thinking_delta")[0].update(update="text_delta"),
    ),
    Mutation("wrong index", "tool-one", lambda s: events(s, update="toolcall_start")[0].update(index=0)),
    Mutation(
        "wrong text at the end",
        "tool-one",
        lambda s: events(s, type="message_end")[1]["content"][0].update(text="let me see"),
    ),
    Mutation(
        "content at the start of an answer",
        "tool-one",
        lambda s: events(s, type="message_start", role="assistant")[0].update(content=[]),
    ),
    Mutation(
        "wrong stop reason",
        "length-stop-text",
        lambda s: events(s, type="turn_end")[0].update(stop_reason="stop"),
    ),
    Mutation(
        "wrong results at the turn's end",
        "tool-parallel-order",
        lambda s: events(s, type="turn_end")[0]["tool_results"].reverse(),
    ),
    Mutation(
        "wrong new messages", "tool-one", lambda s: events(s, type="agent_end")[0]["messages"].remove("user")
    ),
    Mutation(
        "wrong partial result",
        "tool-updates",
        lambda s: events(s, type="tool_execution_update")[1]["partial_result"]["content"][0].update(
            text="99%"
        ),
    ),
    Mutation(
        "no error", "tool-raises", lambda s: events(s, type="tool_execution_end")[0].update(is_error=False)
    ),
    Mutation(
        "a number for a truth value",
        "tool-raises",
        lambda s: events(s, type="tool_execution_end")[0].update(is_error=1),
    ),
    Mutation(
        "wrong args",
        "tool-args-in-deltas",
        lambda s: events(s, type="tool_execution_start")[0].update(args={}),
    ),
    Mutation(
        "no terminate",
        "after-terminate",
        lambda s: events(s, type="tool_execution_end")[0]["result"].pop("terminate"),
    ),
    Mutation(
        "no details",
        "tool-details-and-images",
        lambda s: events(s, type="tool_execution_end")[0]["result"].pop("details"),
    ),
    Mutation(
        "wrong details of a message",
        "tool-details-and-images",
        lambda s: events(s, type="message_end", role="tool_result")[0].update(details={"w": 4}),
    ),
    Mutation(
        "wrong image",
        "steer-message-with-image",
        lambda s: events(s, type="message_end", role="user")[1]["content"][1].update(image="image/gif"),
    ),
    Mutation(
        "wrong role",
        "convert-custom-as-user",
        lambda s: events(s, type="message_end", role="note")[0].update(role="user"),
    ),
    Mutation(
        "wrong error message",
        "error-mid-stream",
        lambda s: events(s, type="message_end", role="assistant")[0].update(error_message="lost"),
    ),
)

SECTIONS = (
    Mutation("dropped request", "tool-one", lambda s: s["expect"]["requests"].pop()),
    Mutation(
        "doubled request", "tool-one", lambda s: s["expect"]["requests"].append(s["expect"]["requests"][1])
    ),
    Mutation("wrong model", "next-turn-context", lambda s: s["expect"]["requests"][2].update(model="m2")),
    Mutation(
        "wrong thinking level",
        "system-prompt-and-thinking",
        lambda s: s["expect"]["requests"][0].update(thinking_level="low"),
    ),
    Mutation(
        "wrong system prompt",
        "system-prompt-and-thinking",
        lambda s: s["expect"]["requests"][0].update(system_prompt=""),
    ),
    Mutation("wrong tools", "tool-parallel-order", lambda s: s["expect"]["requests"][0]["tools"].reverse()),
    Mutation(
        "message missing in a request", "tool-one", lambda s: s["expect"]["requests"][1]["messages"].pop(0)
    ),
    Mutation(
        "messages of a request swapped",
        "tool-one",
        lambda s: swap(s["expect"]["requests"][1]["messages"], 0, 1),
    ),
    Mutation(
        "custom message in a request",
        "convert-drops-custom",
        lambda s: s["expect"]["requests"][0]["messages"].insert(
            0, {"role": "user", "content": [{"text": "ui only"}]}
        ),
    ),
    Mutation("dropped tool call", "tool-one", lambda s: s["expect"]["tool_calls"].pop()),
    Mutation(
        "invented tool call",
        "before-block-reason",
        lambda s: s["expect"]["tool_calls"].append({"t": 2, "tool": "b", "tool_call_id": "1", "args": {}}),
    ),
    Mutation("wrong tool", "tool-one", lambda s: s["expect"]["tool_calls"][0].update(tool="a")),
    Mutation("wrong call id", "tool-one", lambda s: s["expect"]["tool_calls"][0].update(tool_call_id="2")),
    Mutation(
        "wrong args of a call",
        "tool-args-in-deltas",
        lambda s: s["expect"]["tool_calls"][0]["args"].update(n="12"),
    ),
    Mutation("dropped refusal", "prompt-while-busy", lambda s: s["expect"]["errors"].pop()),
    Mutation(
        "invented refusal", "tool-one", lambda s: s["expect"]["errors"].append({"t": 0, "do": "prompt"})
    ),
    Mutation("wrong refusal", "continue-empty", lambda s: s["expect"]["errors"][0].update(do="prompt")),
    Mutation("dropped message", "tool-one", lambda s: s["expect"]["messages"].pop()),
    Mutation(
        "wrong last answer", "tool-one", lambda s: s["expect"]["messages"][3]["content"][0].update(text="no")
    ),
    Mutation("swapped messages", "tool-parallel-order", lambda s: swap(s["expect"]["messages"], 2, 3)),
    Mutation("still streaming", "tool-one", lambda s: s["expect"]["state"].update(is_streaming=True)),
    Mutation("pending call", "tool-one", lambda s: s["expect"]["state"].update(pending_tool_calls=["1"])),
    Mutation("error in the state", "tool-one", lambda s: s["expect"]["state"].update(error_message="x")),
    Mutation(
        "wrong error in the state",
        "error-mid-stream",
        lambda s: s["expect"]["state"].update(error_message="lost"),
    ),
    Mutation("something queued", "tool-one", lambda s: s["expect"]["state"].update(has_queued_messages=True)),
    Mutation("unknown state", "tool-one", lambda s: s["expect"]["state"].update(mood="good")),
    Mutation("unknown section", "tool-one", lambda s: s["expect"].update(evnts=[])),
    Mutation("nothing expected", "tool-one", lambda s: s["expect"].clear()),
)

FREE_TEXT = (
    Mutation(
        "free text: the error's text is missing",
        "tool-args-invalid",
        lambda s: events(s, type="tool_execution_end")[0]["result"].update(content=[]),
    ),
    Mutation(
        "free text: the error's text is empty",
        "tool-args-invalid",
        lambda s: events(s, type="tool_execution_end")[0]["result"].update(content=[{"text": ""}]),
    ),
    Mutation(
        "free text: it is no error",
        "tool-args-invalid",
        lambda s: events(s, type="message_end", role="tool_result")[0].update(is_error=False),
    ),
    Mutation(
        "free text: no error in the state",
        "abort-during-tool",
        lambda s: s["expect"]["state"].update(error_message=None),
    ),
    Mutation(
        "free text: an error in the state",
        "tool-args-invalid",
        lambda s: s["expect"]["state"].update(error_message="x"),
    ),
    Mutation(
        "free text: the text of what is no error",
        "abort-during-parallel",
        lambda s: events(s, type="tool_execution_end", tool_name="b")[0]["result"].update(
            content=[{"text": "C"}]
        ),
    ),
    Mutation("the text is not free", "abort-during-tool", lambda s: s.pop("compare")),
)

SCRIPTS = (
    Mutation("another answer", "tool-one", lambda s: s["responses"][1].update(content=[{"text": "Done"}])),
    Mutation("a response too few", "tool-one", lambda s: s["responses"].pop()),
    Mutation("other chunks", "text-many-deltas", lambda s: s["responses"][0]["content"][0].pop("chunks")),
    Mutation("another result", "tool-one", lambda s: s["tools"][0]["steps"][0].update(result="b")),
    Mutation("a tool that raises", "tool-one", lambda s: s["tools"][0].update(steps=[{"raise": "B"}])),
    Mutation("no update", "tool-updates", lambda s: s["tools"][0]["steps"].pop(0)),
    Mutation("a tool that is missing", "tool-one", lambda s: s["tools"].clear()),
    Mutation(
        "another order", "tool-parallel-order", lambda s: s.update(options={"tool_execution": "sequential"})
    ),
    Mutation("no hook", "before-block-reason", lambda s: s.pop("hooks")),
    Mutation("another queue mode", "steer-three-all", lambda s: s.pop("options")),
    Mutation("no action", "tool-one", lambda s: s["actions"].clear()),
    Mutation("no steering", "steer-on-turn-end", lambda s: s["actions"].pop()),
    Mutation("steering too late", "steer-on-turn-end", lambda s: s["actions"][1]["when"].update(nth=2)),
    Mutation("no abort", "abort-during-text", lambda s: s["actions"].pop()),
    Mutation("no abort of a tool", "abort-tool-that-ignores", lambda s: s["actions"].pop()),
    Mutation(
        "other initial messages", "continue-from-assistant-steer", lambda s: s["initial_messages"].pop(0)
    ),
    Mutation("an action that nobody knows", "tool-one", lambda s: s["actions"].append({"do": "dance"})),
    Mutation("no reset", "reset-between", lambda s: s["actions"].pop(3)),
    Mutation("no clearing", "clear-all-queues", lambda s: s["actions"].pop(2)),
    Mutation("no change of mode", "set-modes-during-run", lambda s: s["actions"].pop()),
    Mutation("no change of tools", "tools-changed-between-prompts", lambda s: s["actions"].pop(1)),
    Mutation("no stop", "stop-after-first-turn", lambda s: s["hooks"].clear()),
    Mutation("no change of model", "next-turn-model-and-thinking", lambda s: s["hooks"].clear()),
    Mutation("all of the context", "transform-context-keep-last", lambda s: s["hooks"].clear()),
)

MUTATIONS = (*VIRTUAL_ONLY, *EVENTS, *SECTIONS, *FREE_TEXT, *SCRIPTS)
