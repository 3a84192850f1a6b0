"""The built-in offline model: what it understands, which tools it really calls, and what it makes of results."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex.testing import TestScheduler

from rx_agent import Agent, ToolResult, tool
from rx_agent.cli import offline_model
from rx_agent.cli.file_tools import file_tools
from rx_agent.cli.offline_evidence import NOTICE
from rx_agent.cli.offline_model import OfflineModel
from rx_agent.cli.offline_questions import narrowing, understand
from rx_agent.cli.offline_summaries import gist
from rx_agent.events import AgentEvent, ToolExecutionStartEvent, TurnEndEvent
from rx_agent.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("# Mailsort\n\nSorts mail by what it says.\n\n## Use\n\nRun it.\n")
    (tmp_path / "src/sort.py").write_text(
        '"""Sorts one mailbox."""\n\n\nclass Sorter:\n    pass\n\n\ndef main():\n    Sorter()\n'
    )
    (tmp_path / "src/mails.csv").write_text("from,to\n" + "a,b\n" * 2000)
    (tmp_path / "app.db").write_bytes(b"SQLite format 3\x00" + bytes(40_000))
    return tmp_path


class Conversation:
    """An agent with the offline model, and what happened in its last run."""

    def __init__(self, root: Path | None, **options: Any) -> None:
        tools = file_tools(root) if root is not None else []
        self.agent = Agent(**{"stream_function": OfflineModel(word_seconds=0), "tools": tools, **options})
        self.events: list[AgentEvent] = []
        self.agent.subscribe(self.events.append)

    def ask(self, *input: Any) -> str:
        self.events.clear()
        run = self.agent.prompt(*input)
        assert run.end is not None
        assert run.end.reason == "completed", run.end.error_message
        return run.text

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [(e.tool_name, e.args) for e in self.events if isinstance(e, ToolExecutionStartEvent)]

    @property
    def turns(self) -> list[TurnEndEvent]:
        return [event for event in self.events if isinstance(event, TurnEndEvent)]


# --- the main job ------------------------------------------------------------------------------------------


def test_the_largest_files_are_found_looked_into_and_named(root: Path) -> None:
    talk = Conversation(root)
    answer = talk.ask("which files here are the largest, and what are they?")
    assert answer.splitlines()[0] == "The largest file here is app.db, 40.0 kB, of 4 files, 48.2 kB in all."
    assert "1. app.db, 40.0 kB: SQLite database" in answer
    assert "2. src/mails.csv, 8.0 kB: CSV table, 2,001 lines; it begins: from,to" in answer
    assert "B: Python source, 9 lines; it begins: Sorts one mailbox" in answer
    assert "README.md begins: Mailsort: Sorts mail by what it says." in answer
    assert [len(turn.tool_results) for turn in talk.turns] == [2, 4, 0]


def test_how_long_a_file_is_is_told_in_a_line(root: Path) -> None:
    assert Conversation(root).ask("how many lines has src/mails.csv?").splitlines()[-1] == (
        "src/mails.csv has 2,001 lines, 8.0 kB (CSV table)."
    )


def test_the_tools_of_one_turn_run_at_the_same_time(root: Path) -> None:
    talk = Conversation(root)
    talk.ask("what are the largest files?")
    kinds = [event.type for event in talk.events if event.type.startswith("tool_execution")]
    starts, ends = ["tool_execution_start"], ["tool_execution_end"]
    assert kinds == starts * 2 + ends * 2 + starts * 4 + ends * 4


def test_the_first_line_says_what_it_is_and_how_to_get_a_real_model_once(root: Path) -> None:
    talk = Conversation(root)
    talk.ask("how many files?")
    assert talk.turns[0].message.text.startswith(NOTICE + "\n\n")
    assert "offline model" in NOTICE
    assert "not an LLM" in NOTICE
    assert "OPENAI_API_KEY" in NOTICE
    talk.ask("how many files?")
    assert NOTICE not in talk.turns[0].message.text


def test_it_streams_word_by_word_on_the_scheduler_that_it_runs_on(root: Path) -> None:
    scheduler = TestScheduler()
    agent = Agent(stream_function=OfflineModel(word_seconds=1.0), tools=file_tools(root), scheduler=scheduler)
    seen: list[float] = []
    agent.subscribe(lambda event: seen.append(scheduler.clock) if event.type == "message_update" else None)
    agent.prompt("hello")
    assert len(seen) < 3
    scheduler.start()
    words = len((NOTICE + agent.messages[-1].text.removeprefix(NOTICE)).split())
    assert seen == sorted(seen)
    assert len(seen) == words + 2
    assert seen[-1] == pytest.approx(offline_model.LONGEST_SECONDS, rel=0.1)


def test_usage_is_estimated_and_costs_nothing(root: Path) -> None:
    talk = Conversation(root)
    talk.ask("how many files?")
    usage = talk.turns[-1].message.usage
    assert usage.input > talk.turns[0].message.usage.input > 0
    assert usage.output > 0
    assert usage.cost.total == 0


def test_each_call_of_a_conversation_has_an_id_of_its_own(root: Path) -> None:
    talk = Conversation(root)
    talk.ask("how many files?")
    talk.ask("what are the largest files?")
    ids = [m.tool_call_id for m in talk.agent.messages if isinstance(m, ToolResultMessage)]
    assert len(ids) == len(set(ids)) == 8


# --- other questions ---------------------------------------------------------------------------------------


def test_files_and_lines_are_counted(root: Path) -> None:
    answer = Conversation(root).ask("how many files and lines are there?")
    assert "Here are 4 files, 48.2 kB in all." in answer
    assert "They hold 2,017 lines, in 3 text files." in answer
    assert "Most lines: src/mails.csv (2,001)" in answer


def test_a_search_looks_at_contents_and_names(root: Path) -> None:
    talk = Conversation(root)
    answer = talk.ask("where is Sorter defined?")
    assert "- src/sort.py:4: class Sorter:" in answer
    assert [name for name, _ in talk.calls] == ["search_files", "list_files"]
    assert "in none of the 3 text files here" in talk.ask('find "nothing like it"')


def test_a_file_is_found_by_half_its_name_and_outlined(root: Path) -> None:
    talk = Conversation(root)
    answer = talk.ask("summarise the readme")
    assert "README.md, 57 B: Markdown, 7 lines" in answer
    assert "- Mailsort\n- Use" in answer
    assert talk.calls == [
        ("list_files", {"pattern": "readme*", "limit": 20}),
        ("read_file", {"path": "README.md", "limit": 400}),
    ]
    assert "class Sorter" in talk.ask("what does src/sort.py do?")
    assert "    Sorter()" in talk.ask("show me sort.py")
    assert "no file here whose name begins with nowhere.py" in talk.ask("read nowhere.py")


def test_a_folder_is_listed_with_what_the_project_is(root: Path) -> None:
    answer = Conversation(root).ask("what is here?")
    assert "Folders: src/." in answer
    assert "Files at the top: README.md, app.db." in answer
    assert "it begins: Mailsort: Sorts mail by what it says." in answer


def test_a_question_that_no_rule_fits_gets_an_honest_answer(root: Path) -> None:
    talk = Conversation(root)
    answer = talk.ask("what will the weather be?")
    assert "Here are 4 files" in answer
    assert "To your question itself I have no answer." in answer


def test_text_that_comes_with_the_question_is_summed_up_without_tools(root: Path) -> None:
    talk = Conversation(root)
    attached = TextContent(text="<stdin>\n# Notes\n\nbuy milk\nsell milk\n</stdin>")
    answer = talk.ask(UserMessage(content=[TextContent(text="summarise"), attached]))
    assert "has 4 lines and 6 words" in answer
    assert "It begins: Notes: buy milk" in answer
    assert talk.calls == []
    answer = talk.ask(UserMessage(content=[TextContent(text="find milk"), attached]))
    assert "“milk” is in 2 lines of it:\n- 3: buy milk\n- 4: sell milk" in answer


# --- in trouble --------------------------------------------------------------------------------------------


def test_without_tools_it_says_that_it_cannot_look() -> None:
    answer = Conversation(None).ask("what are the largest files?")
    assert "I have no tool for that here (list_files is missing)" in answer


def test_an_empty_folder_is_no_problem(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    for question in ("the largest files?", "how many files?", "find x", "read README", "list", "sing!"):
        assert talk.ask(question)
    assert "There are no files here." in talk.ask("the largest files?")


def test_failures_of_tools_are_told(root: Path) -> None:
    answer = Conversation(root).ask("largest files in nowhere/")
    assert "I could not list the files" in answer
    assert "- list_files: path: there is no 'nowhere' here" in answer
    assert answer.count("nowhere") == 1


def test_a_file_that_vanishes_is_told_and_the_others_are_described(root: Path) -> None:
    talk = Conversation(root)

    def vanish(event: AgentEvent) -> None:
        if isinstance(event, TurnEndEvent) and len(talk.turns) == 1:
            os.remove(root / "app.db")

    talk.agent.subscribe(vanish)
    answer = talk.ask("largest files?")
    assert "1. app.db, 40.0 kB: I could not look into it" in answer
    assert "2. src/mails.csv, 8.0 kB: CSV table" in answer
    assert "- read_file: path: there is no 'app.db' here" in answer


def test_tools_of_the_same_name_that_tell_something_else_end_in_an_error_not_a_crash() -> None:
    @tool
    def list_files(sort: str = "", limit: int = 0, recursive: bool = True) -> ToolResult:
        """Something else."""
        return ToolResult(content="?", details={"what": "else"})

    agent = Agent(stream_function=OfflineModel(word_seconds=0), tools=[list_files])
    end = agent.prompt("largest files").end
    assert end is not None
    assert end.reason == "error"
    assert "the offline model's rules failed: KeyError" in str(end.error_message)


# --- steering, follow-ups, aborts --------------------------------------------------------------------------


def on_first_turn(talk: Conversation, act: Callable[[], object]) -> None:
    done: list[bool] = []

    def listener(event: AgentEvent) -> None:
        if event.type == "tool_execution_start" and not done:
            done.append(True)
            act()

    talk.agent.subscribe(listener)


def test_steering_to_another_question_answers_that_one(root: Path) -> None:
    talk = Conversation(root)
    on_first_turn(talk, lambda: talk.agent.steer("how many files are there?"))
    assert talk.ask("what are the largest files?").startswith("Here are 4 files")


def test_steering_that_narrows_keeps_the_question(root: Path) -> None:
    talk = Conversation(root)
    on_first_turn(talk, lambda: talk.agent.steer("only the python files"))
    answer = talk.ask("what are the largest files?")
    assert answer.startswith("The largest file here matching *.py is src/sort.py")


def test_steering_that_no_rule_fits_is_owned_up_to_and_the_question_answered(root: Path) -> None:
    talk = Conversation(root)
    on_first_turn(talk, lambda: talk.agent.steer("be brief, please"))
    answer = talk.ask("what are the largest files?")
    assert answer.startswith("The largest file here is app.db")
    assert "I have no rule for “be brief, please”" in answer


def test_a_follow_up_is_a_question_of_its_own(root: Path) -> None:
    talk = Conversation(root)
    talk.agent.follow_up("how many files are there?")
    assert talk.ask("what are the largest files?").startswith("Here are 4 files")
    assert any("The largest file here is app.db" in turn.message.text for turn in talk.turns)


def test_after_an_abort_the_next_question_is_answered_and_the_same_one_can_be_retried(root: Path) -> None:
    talk = Conversation(root)
    on_first_turn(talk, talk.agent.abort)
    run = talk.agent.prompt("what are the largest files?")
    assert run.end is not None
    assert run.end.reason == "aborted"
    assert talk.ask("how many files?").startswith("Here are 4 files")


def test_a_question_whose_answer_was_aborted_can_be_retried(root: Path) -> None:
    talk = Conversation(root)
    updates: list[AgentEvent] = []

    def abort_at_the_third_word(event: AgentEvent) -> None:
        if event.type == "message_update":
            updates.append(event)
            if len(updates) == 3:
                talk.agent.abort()

    talk.agent.subscribe(abort_at_the_third_word)
    run = talk.agent.prompt("what are the largest files?")
    assert run.end is not None
    assert run.end.reason == "aborted"
    assert isinstance(talk.agent.messages[-1], AssistantMessage)
    assert talk.agent.continue_().text.startswith("The largest file here is app.db")


# --- understanding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "intent", "subject", "pattern", "path"),
    [
        ("which files here are the largest, and what are they?", "largest", "", "*", "."),
        ("top 3 python files by size", "largest", "", "*.py", "."),
        ("what is the biggest file in tests/?", "largest", "", "*", "tests"),
        ("how many lines of Python code?", "count", "", "*.py", "."),
        ("count the files in the src folder", "count", "", "*", "src"),
        ("search for AbortSignal", "search", "AbortSignal", "*", "."),
        ('find "hello world" in *.py', "search", "hello world", "*.py", "."),
        ("where is AbortSignal defined?", "search", "AbortSignal", "*", "."),
        ("who uses flat_map", "search", "flat_map", "*", "."),
        ("find all TODO comments in the python files", "search", "TODO", "*.py", "."),
        ("find *.toml", "list", "", "*.toml", "."),
        ("read README.md", "read", "README.md", "*", "."),
        ("summarise the readme", "read", "readme", "*", "."),
        ("how many lines has src/loop.py?", "read", "src/loop.py", "*", "."),
        ("list .py files", "list", "", "*.py", "."),
        ("what is this project about?", "list", "", "*", "."),
        ("what can you do?", "help", "", "*", "."),
    ],
)
def test_questions_that_rules_fit(text: str, intent: str, subject: str, pattern: str, path: str) -> None:
    question = understand(text)
    assert question is not None
    assert (question.intent, question.subject, question.pattern, question.path) == (
        intent,
        subject,
        pattern,
        path,
    )


@pytest.mark.parametrize(
    "text", ["be brief", "why is the sky blue?", "search", "e.g. what?", "", "\ud800", "🙂" * 50]
)
def test_questions_that_no_rule_fits(text: str) -> None:
    assert understand(text) is None


def test_numbers_and_narrowing() -> None:
    assert [
        getattr(understand(text), "number", 0) for text in ("top 3 by size", "the two largest", "largest")
    ] == [3, 2, 5]
    assert narrowing("and in *.md?") == "*.md"
    assert narrowing("search in *.md for x") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\n# Sorts mail.\nset -e\n", "Sorts mail."),
        ('"""Doc of a module."""\nimport os\n', "Doc of a module."),
        ('{\n  "name": "x"\n}', '"name": "x"'),
        ("# Title\n\nWhat it is.\n", "Title: What it is."),
        ("\n\n---\n***\n", ""),
    ],
)
def test_the_gist_is_the_first_line_that_says_something(text: str, said: str) -> None:
    assert gist(text) == said
