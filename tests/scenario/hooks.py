"""A file's hooks, as scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from rx_agent import (
    AfterToolCallContext,
    AfterToolCallResult,
    AgentLoopTurnUpdate,
    AgentMessage,
    BeforeToolCallContext,
    BeforeToolCallResult,
    Message,
    PrepareNextTurnContext,
    ThinkingLevel,
    UserMessage,
)
from tests.scenario.scripts import Script
from tests.scenario.vocabulary import MODEL, Json, ScenarioMessage, content

HookScript = Callable[[Any, Any], Script[Any]]


class HookBroke(Exception):
    """What a file's hook raises."""


def hook_scripts(hooks: Json, turns: Callable[[], int]) -> dict[str, HookScript]:
    """A script per hook of the file. ``turns()``: how many turns have ended."""
    makers: dict[str, Callable[[Any], HookScript]] = {
        "before_tool_call": _before_tool_call,
        "after_tool_call": _after_tool_call,
        "transform_context": _transform_context,
        "prepare_next_turn": lambda rules: _prepare_next_turn(rules, turns),
        "should_stop_after_turn": lambda numbers: _should_stop_after_turn(numbers, turns),
    }
    return {name: makers[name](rules) for name, rules in hooks.items()}


def _begin(rule: Json) -> Script[None]:
    """What every rule starts with: a wait, perhaps an exception."""
    yield rule.get("after", 0)
    if "raise" in rule:
        raise HookBroke(rule["raise"])


def _first_for(rules: Sequence[Json], tool: str) -> Json | None:
    return next((rule for rule in rules if rule.get("tool", tool) == tool), None)


def _before_tool_call(rules: Sequence[Json]) -> HookScript:
    def script(context: BeforeToolCallContext, _: Any) -> Script[BeforeToolCallResult | None]:
        rule = _first_for(rules, context.tool_call.name)
        if rule is None:
            return None
        yield from _begin(rule)
        if "block" not in rule:
            return None
        return BeforeToolCallResult(rule["block"], rule.get("reason"), rule.get("terminate"))

    return script


def _after_tool_call(rules: Sequence[Json]) -> HookScript:
    def script(context: AfterToolCallContext, _: Any) -> Script[AfterToolCallResult | None]:
        rule = _first_for(rules, context.tool_call.name)
        if rule is None:
            return None
        yield from _begin(rule)
        overrides: Json = {name: rule[name] for name in ("details", "is_error", "terminate") if name in rule}
        if "text" in rule or "content" in rule:
            overrides["content"] = content(rule, "content", "text")
        return AfterToolCallResult(**overrides) if overrides else None

    return script


def _transform_context(rule: Json) -> HookScript:
    def script(messages: Sequence[AgentMessage], _: Any) -> Script[Sequence[AgentMessage] | None]:
        yield from _begin(rule)
        return last(messages, rule["keep_last"]) if "keep_last" in rule else None

    return script


def _prepare_next_turn(rules: Sequence[Json], turns: Callable[[], int]) -> HookScript:
    def script(context: PrepareNextTurnContext, _: Any) -> Script[AgentLoopTurnUpdate | None]:
        rule = next((rule for rule in rules if rule["after_turn"] == turns()), None)
        if rule is None:
            return None
        yield from _begin(rule)
        shown = context.context
        return AgentLoopTurnUpdate(
            context=replace(shown, messages=last(shown.messages, rule["keep_last"]))
            if "keep_last" in rule
            else None,
            model=MODEL.model_copy(update={"id": rule["model"]}) if "model" in rule else None,
            thinking_level=ThinkingLevel(rule["thinking_level"]) if "thinking_level" in rule else None,
        )

    return script


def _should_stop_after_turn(numbers: Sequence[int] | int, turns: Callable[[], int]) -> HookScript:
    after = {numbers} if isinstance(numbers, int) else set(numbers)

    def script(_: PrepareNextTurnContext, __: Any) -> Script[bool]:
        yield 0
        return turns() in after

    return script


def last(messages: Sequence[AgentMessage], count: int) -> Sequence[AgentMessage]:
    """The last ``count`` messages."""
    return tuple(messages)[max(0, len(messages) - count) :]


# --- conversion ----------------------------------------------------------------------------------------------


def drop_custom(messages: Iterable[AgentMessage]) -> list[Message]:
    """``convert_to_llm`` that filters custom messages."""
    return [item for item in messages if not isinstance(item, ScenarioMessage)]  # type: ignore[misc]


def custom_as_user(messages: Iterable[AgentMessage]) -> list[Message]:
    """``convert_to_llm`` that makes a user message of a custom one."""
    return [
        UserMessage(content=item.content) if isinstance(item, ScenarioMessage) else item  # type: ignore[misc]
        for item in messages
    ]


CONVERSIONS = {"drop_custom": drop_custom, "custom_as_user": custom_as_user, None: None}
