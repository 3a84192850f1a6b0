"""Real agents against llmock, which breaks what they ask for and judges how they take it: inside a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from reactivex import operators as ops

from rx_agent import AgentState, AssistantMessage, tool
from rx_agent.messages import ErrorKind
from rx_agent.providers.base import Timeouts
from tests.judges.asking import ANSWER, APIS, KEY, REPLY, Api, api_id, last_answer, over_apis, played
from tests.judges.serving import Llmock

WORDS = [word + " " for word in ANSWER.split()]
"""The answer as it comes, an event a word; only the last has no space behind it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llmock]:
    with Llmock(tmp_path_factory.mktemp("llmock") / "log") as running:
        yield running


@pytest.fixture
def llmock(server: Llmock) -> Llmock:
    server.reset()
    return server


def fault(kind: str, after: int, **fields: Any) -> dict[str, Any]:
    """Breaks one stream of the next, ``after`` that many events."""
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, **fields}


def heard(words: int) -> str:
    """The first words of the answer."""
    return "".join(WORDS[:words]).removesuffix(" " if words >= len(WORDS) else "")


def so_far(state: AgentState) -> str:
    """What has been heard of the answer that is arriving."""
    message = state.streaming_message
    return message.text if isinstance(message, AssistantMessage) else ""


def bodies(llmock: Llmock) -> list[Any]:
    return [request["body"] for request in llmock.requests]


# --- in the middle of an answer ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """How a stream breaks, as what the run ends, and in which words.

    ``judged``: the judge has an opinion. Of a malformed event it only knows that it sent one.
    """

    kind: ErrorKind
    says: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    judged: bool = True


IMPATIENT = {"timeouts": Timeouts(connect=5, first_byte=5, idle=0.3)}
BROKEN: Mapping[str, Broken] = {
    "stall": Broken("timeout", "nothing came within 0.3 s", {"stall_seconds": 30}, IMPATIENT),
    "disconnect": Broken("network", "ended before it was complete: "),
    "truncate": Broken("network", "ended before it was complete"),
    "malformed": Broken("network", "is not an event of this API", judged=False),
}


@over_apis
@pytest.mark.parametrize("kind", BROKEN)
def test_an_answer_that_breaks_is_kept_as_far_as_it_came_and_asked_for_again(
    llmock: Llmock, api: Api, kind: str
) -> None:
    broken = BROKEN[kind]
    llmock.script(fault(kind, api.lead + 5, **broken.fields), REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url, options=broken.options)
        end = await agent.prompt("Count to ten.")
        failed = last_answer(agent)
        assert (end.reason, failed.stop_reason, failed.error_kind) == ("error", "error", broken.kind)
        assert failed.text == heard(5)
        assert failed.error_message == end.error_message
        assert broken.says in (end.error_message or "")
        assert KEY not in (end.error_message or "")

        end = await agent.continue_()
        assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        assert last_answer(agent).stop_reason == "stop"
        assert [message.role for message in agent.messages] == ["user", "assistant", "assistant"]
        await agent.wait_for_idle()

    played(story)
    first, second = bodies(llmock)
    assert first == second  # half an answer is nothing that the model said
    if broken.judged:
        llmock.assert_resilient()


@over_apis
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
def test_wherever_it_breaks_nothing_but_the_whole_answer_is_passed_off_as_one(
    llmock: Llmock, api: Api, kind: str
) -> None:
    """Even where all words are there: nobody has said that there are no more."""
    llmock.script(REPLY)

    async def story() -> None:
        assert (await api.agent(llmock.url).prompt("Count to ten.")).text == ANSWER
        events = llmock.requests[0]["chunks_sent"]
        assert events >= api.lead + len(WORDS) + api.spare
        for after in range(1, events - api.spare):
            llmock.script(fault(kind, after))
            agent = api.agent(llmock.url)
            end = await agent.prompt("Count to ten.")
            if kind == "disconnect" and after <= api.unheard:
                assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
                assert len(agent.messages) == 2
                continue
            failed = last_answer(agent)
            assert (end.reason, failed.stop_reason, failed.error_kind) == ("error", "error", "network"), after
            assert failed.text == heard(max(0, after - api.lead))
            end = await agent.continue_()
            assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
            await agent.wait_for_idle()

    played(story)
    if kind != "malformed":
        llmock.assert_resilient()


@pytest.mark.parametrize("api", [api for api in APIS if api.spare], ids=api_id)
@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
def test_an_answer_that_has_said_why_it_ended_is_whole_without_the_end_mark(
    llmock: Llmock, api: Api, kind: str
) -> None:
    """Here the judge is stricter than the API: it wants the mark itself."""
    llmock.script(REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url)
        await agent.prompt("Count to ten.")
        events = llmock.requests[0]["chunks_sent"]
        for after in range(events - api.spare, events):
            llmock.script(fault(kind, after))
            end = await agent.prompt("Again, please.")
            assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
            assert last_answer(agent).stop_reason == "stop"
        faults = [request["fault"] for request in llmock.requests]
        assert faults == [None, *(f"stream:{kind}@{after}" for after in range(events - api.spare, events))]
        await agent.wait_for_idle()

    played(story)


# --- waiting -----------------------------------------------------------------------------------------------


@over_apis
def test_a_pause_that_is_no_stall_is_not_noticed(llmock: Llmock, api: Api) -> None:
    llmock.script(fault("stall", api.lead + 5, stall_seconds=0.3), REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url)
        end = await agent.prompt("Count to ten.")
        assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        assert [request["stall_waited"] > 0.25 for request in llmock.requests] == [True]
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()


@over_apis
def test_whoever_is_tired_of_waiting_may_abort_and_go_on_later(llmock: Llmock, api: Api) -> None:
    llmock.script(fault("stall", api.lead + 5, stall_seconds=30), REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url)
        run = asyncio.ensure_future(agent.prompt("Count to ten."))
        async with asyncio.timeout(5):
            await agent.states.pipe(ops.first(lambda state: so_far(state) == heard(5)))
        agent.abort()
        end = await run
        aborted = last_answer(agent)
        assert (end.reason, aborted.stop_reason, aborted.text) == ("aborted", "aborted", heard(5))
        await agent.wait_for_idle()
        (request,) = llmock.requests  # it has noticed that nobody listens any more
        assert (request["completed"], request["stall_waited"] < 5) == (False, True)

        end = await agent.continue_()
        assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()


# --- tools -------------------------------------------------------------------------------------------------

CITY = "Llanfairpwllgwyngyll"
CALLING = {
    "type": "reply",
    "text": "Let me look.",
    "tool_calls": [{"name": "weather", "arguments": {"city": CITY}}],
    "times": 2,
}
CALLED = {
    "openai_chat": range(5, 9),
    "openai_responses": range(11, 17),
    "anthropic": range(8, 13),
    "google": range(2, 3),
}
"""The events of that answer, by API, from the first behind the call's name (Gemini sends a call in one piece) to
the one that says why the answer ended, which is the last that can be missed."""


@over_apis
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
def test_a_tool_call_that_breaks_off_is_never_run(llmock: Llmock, api: Api, kind: str) -> None:
    """Not even if all its arguments are there. Asked again, the model calls again, and that runs once."""
    ran: list[str] = []

    @tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        ran.append(city)
        return "rain"

    async def story() -> None:
        for after in CALLED[api.name]:
            llmock.recover()
            llmock.script(fault(kind, after), CALLING, REPLY)
            agent = api.agent(llmock.url, tools=[weather])
            end = await agent.prompt("What is the weather there?")
            failed = last_answer(agent)
            assert (end.reason, failed.stop_reason, failed.error_kind) == ("error", "error", "network"), after
            assert len(failed.tool_calls) == (api.name != "google")
            assert failed.text
            assert "Let me look.".startswith(failed.text)
            assert ran == []

            end = await agent.continue_()
            assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
            assert ran == [CITY]
            roles = ["user", "assistant", "assistant", "tool_result", "assistant"]
            assert [message.role for message in agent.messages] == roles
            broken, again, answered = bodies(llmock)[-3:]
            assert broken == again
            assert str(answered).count("rain") == 1
            await agent.wait_for_idle()
            ran.clear()

    played(story)
    if kind != "malformed":
        llmock.assert_resilient()
