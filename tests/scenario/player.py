"""One file being played: its agent, its user, and what is noted down meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import reactivex
from reactivex import Observable, abc

from rx_agent import (
    Agent,
    AgentEvent,
    AgentMessage,
    AssistantMessageEvent,
    Context,
    Model,
    QueueMode,
    Run,
    RxAgentError,
    StreamOptions,
    ThinkingLevel,
    Tool,
    ToolContext,
    ToolExecutionMode,
    tool_from_schema,
)
from rx_agent.message_builder import MessageBuilder
from rx_agent.messages import ToolResult
from tests.scenario.hooks import CONVERSIONS, hook_scripts
from tests.scenario.scripts import Script, observed, response_script, tool_script
from tests.scenario.vocabulary import (
    MODEL,
    Json,
    copied,
    image,
    initial_messages,
    message,
    shown_event,
    shown_message,
)


class World(Protocol):
    """Where a file is played: what time is there, and how what waits is run."""

    tick: float
    """How long a tick is to the schedulers."""

    def now(self) -> int:
        """The tick it is."""
        ...

    def later(self, ticks: float, action: Callable[[], None]) -> None:
        """Acts after ``ticks``, whatever has ended meanwhile."""
        ...

    def function(
        self, script: Callable[[Any, Any], Script[Any]], *, stubborn: bool = False
    ) -> Callable[[Any, Any], Any]:
        """``script`` as the body of a tool or as a hook. ``stubborn``: it cannot be cancelled."""
        ...

    @property
    def scheduler(self) -> abc.SchedulerBase | None:
        """What the agent is given to run on."""
        ...


@dataclass
class Outcome:
    """What came of a file, in the shape of its ``expect``; and what went wrong in playing it."""

    events: list[Json] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    tool_calls: list[Json] = field(default_factory=list)
    errors: list[Json] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    state: Json = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Player:
    """The agent of a scenario, and its user. A world calls ``perform`` with the actions as they are due."""

    def __init__(self, scenario: Json, world: World) -> None:
        self.world = world
        self.outcome = Outcome()
        self.timed: list[Json] = []
        self.sequential: list[Json] = []
        self._on_event: dict[tuple[str, int], list[Json]] = {}
        for action in scenario.get("actions", ()):
            if (when := action.get("when")) is not None:
                self._on_event.setdefault((when["event"], when.get("nth", 1)), []).append(action)
            else:
                (self.timed if "at" in action else self.sequential).append(action)
        self._seen: Counter[str] = Counter()
        self._responses: Iterator[Json] = iter(scenario.get("responses", ()))
        self._tools = {tool["name"]: self._tool(tool) for tool in scenario.get("tools", ())}
        self.agent = self._agent(scenario)
        self.agent.subscribe(self._see)

    # --- the agent -----------------------------------------------------------------------------------------

    def _agent(self, scenario: Json) -> Agent:
        options: Json = scenario.get("options", {})
        scripts = hook_scripts(scenario.get("hooks", {}), lambda: self._seen["turn_end"])
        hooks: dict[str, Any] = {name: self.world.function(script) for name, script in scripts.items()}
        return Agent(
            model=MODEL,
            stream_function=self._stream,
            system_prompt=options.get("system_prompt", ""),
            tools=list(self._tools.values()),
            messages=initial_messages(scenario),
            thinking_level=ThinkingLevel(options.get("thinking_level", "off")),
            steering_mode=QueueMode(options.get("steering_mode", "one-at-a-time")),
            follow_up_mode=QueueMode(options.get("follow_up_mode", "one-at-a-time")),
            tool_execution=ToolExecutionMode(options.get("tool_execution", "parallel")),
            scheduler=self.world.scheduler,
            convert_to_llm=CONVERSIONS[options.get("convert_to_llm")],
            **hooks,
        )

    def _stream(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        """Gives the file's responses in order, and notes what was asked."""

        def answer(_: Any) -> Observable[AssistantMessageEvent]:
            self.outcome.requests.append(
                {
                    "t": self.world.now(),
                    "model": model.id,
                    "thinking_level": str(options.thinking_level),
                    "system_prompt": context.system_prompt,
                    "tools": [tool.name for tool in context.tools],
                    "messages": [shown_message(item) for item in context.messages],
                }
            )
            response = next(self._responses, None)
            if response is None:
                response = {"fails_before_start": True, "error_message": "The file has no further response"}
            builder = MessageBuilder(model)
            return observed(lambda emit: response_script(response, builder, emit), self.world.tick)

        return reactivex.defer(answer)

    def _tool(self, tool: Json) -> Tool:
        def body(args: Json, context: ToolContext[Any]) -> Script[Any]:
            self.outcome.tool_calls.append(
                {
                    "t": self.world.now(),
                    "tool": tool["name"],
                    "tool_call_id": context.tool_call_id,
                    "args": copied(args),
                }
            )
            try:
                return (yield from tool_script(tool, context, self.world.later))
            except Exception:
                if stubborn and context.signal.aborted:
                    return (
                        ToolResult()
                    )  # told to nobody, and reported elsewhere; the trace has no place for it
                raise

        stubborn = tool.get("ignores_abort", False)
        mode = tool.get("execution_mode")
        return tool_from_schema(
            tool["name"],
            f"The tool {tool['name']}",
            tool.get("parameters", {"type": "object", "properties": {}}),
            self.world.function(body, stubborn=stubborn),
            execution_mode=mode and ToolExecutionMode(mode),
        )

    # --- the user ------------------------------------------------------------------------------------------

    def _see(self, event: AgentEvent) -> None:
        """Notes an event, and does what is to be done inside a listener of it."""
        self.outcome.events.append({"t": self.world.now(), **shown_event(event)})
        self._seen[event.type] += 1
        for action in self._on_event.get((event.type, self._seen[event.type]), ()):
            self.perform(action)

    def perform(self, action: Json) -> Run | None:
        """Does what ``action`` says; a run that it starts is returned. What is refused is noted."""
        try:
            return self._do(action)
        except RxAgentError:
            self.outcome.errors.append({"t": self.world.now(), "do": action["do"]})
        except Exception as error:
            self.problem(f"{action['do']!r} raised {error!r}")
        return None

    def _do(self, action: Json) -> Run | None:
        agent = self.agent
        match action["do"]:
            case "prompt":
                images = [image(item) for item in action.get("images", ())]
                return self._watched(agent.prompt(_input(action), images))
            case "continue":
                return self._watched(agent.continue_())
            case "steer":
                agent.steer(_input(action))
            case "follow_up":
                agent.follow_up(_input(action))
            case "abort":
                agent.abort()
            case "reset":
                agent.reset()
            case "clear_steering_queue" | "clear_steering":
                agent.clear_steering_queue()
            case "clear_follow_up_queue" | "clear_follow_up":
                agent.clear_follow_up_queue()
            case "clear_all_queues" | "clear_queues" | "clear_all":
                agent.clear_all_queues()
            case "set_steering_mode":
                agent.steering_mode = _mode(action)
            case "set_follow_up_mode":
                agent.follow_up_mode = _mode(action)
            case "set_tools":
                agent.tools = [self._tools[name] for name in action["tools"]]
            case other:
                raise ValueError(f"unknown action {other!r}")
        return None

    def _watched(self, run: Run) -> Run:
        run.subscribe(on_error=lambda error: self.problem(f"a run signalled on_error: {error!r}"))
        return run

    # --- the end -------------------------------------------------------------------------------------------

    def problem(self, text: str) -> None:
        """Notes something that must not happen in any scenario."""
        self.outcome.problems.append(f"tick {self.world.now()}: {text}")

    def finish(self) -> Outcome:
        """All of it, once nothing happens any more."""
        state = self.agent.state
        self.outcome.messages = [shown_message(item) for item in state.messages]
        self.outcome.state = {
            "is_streaming": state.is_streaming,
            "pending_tool_calls": sorted(state.pending_tool_calls),
            "error_message": state.error_message,
            "has_queued_messages": self.agent.has_queued_messages(),
        }
        return self.outcome


def _input(action: Json) -> str | AgentMessage | list[AgentMessage]:
    if "messages" in action:
        return [message(item) for item in action["messages"]]
    return message(action["message"]) if "message" in action else action["text"]


def _mode(action: Json) -> QueueMode:
    """The queue mode that ``action`` names, under whichever key."""
    modes = [str(mode) for mode in QueueMode]
    return next(QueueMode(value) for key, value in action.items() if key != "do" and value in modes)
