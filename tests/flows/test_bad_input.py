"""Bad input, bad settings, bad places: a typed refusal that says what to do, and nothing lost."""

import json
import subprocess
import sys

import pytest

from instar.errors import Invalid, NotFound, TooLarge
from instar.testing.agent import agent_at, environ, instar, update
from instar.testing.builders import WORDS_ALONE, at_work, eventually
from instar.testing.wire import ScriptedModelServer, text_step


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("memory", "save", ""), "invalid"),
        (("memory", "save", "  "), "invalid"),
        (("memory", "save", "x" * 51_201), "invalid"),
        (("memory", "save", "x", "--document", ""), "invalid"),
        (("memory", "save", "x", "--document", "../x.md"), "invalid"),
        (("memory", "save", "x", "--document", "memory/a/b.md"), "invalid"),
        (("memory", "save", "x", "--document", "MEMORY.md%00"), "invalid"),
        (("memory", "save", "x", "--agent", "../x"), "invalid"),
        (("memory", "save", "my key is AKIAIOSFODNN7EXAMPLE"), "secret"),
        (("memory", "get", "memory/nothing.md"), "not_found"),
        (("memory", "get", "/etc/passwd"), "invalid"),
        (("memory", "get", "MEMORY.md", "--lines", "0-1"), "invalid"),
        (("memory", "get", "MEMORY.md", "--lines", "x"), "invalid"),
        (("memory", "delete", ""), "invalid"),
        (("memory", "delete", "never said"), "not_found"),
        (("memory", "restore", "MEMORY.md", "--revision", "nonsense"), "not_found"),
        (("memory", "search", "x", "--limit", "0"), "invalid"),
        (("memory", "search", "x", "--since", "yesterday"), "invalid"),
        (("memory", "search", "x", "--kind", "rumour"), "invalid"),
        (("key", "create", "--scopes", "everything"), "invalid"),
        (("key", "revoke", "nobody"), "not_found"),
        (("config", "set", "model.api_key", "x"), "invalid"),
        (("config", "set", "nonsense", "x"), "invalid"),
        (("config", "set", "model.base_url", "ftp://x"), "invalid"),
        (("turn", "show", "nothing"), "not_found"),
        (("chat", "--once", " "), "invalid"),
        (("chat", "--session", "a\nb", "--once", "x"), "invalid"),
    ],
)
def test_a_refusal_is_typed_exits_1_and_changes_nothing(home, words, kind):
    instar(home, "memory", "save", "the bike is green")

    code, problem, _ = instar(home, *words)

    assert (code, problem["type"]) == (1, kind)
    assert problem["detail"]
    assert (home / "agents/main/MEMORY.md").read_text() == "- the bike is green\n"
    assert sorted(path.name for path in (home / "agents").iterdir()) == ["main"]


@pytest.mark.parametrize(
    "words",
    [(), ("nonsense",), ("memory", "save"), ("memory", "get", "x", "--nonsense"), ("--home",)],
)
def test_a_wrong_word_exits_2(home, words):
    code, answer, said = instar(home, *words)

    assert (code, answer) == (2, None)
    assert "instar --help" in said


def test_a_text_may_begin_with_a_hyphen_after_two(home):
    code, saved, _ = instar(home, "memory", "save", "--json", "--", "--home is where Anna lives")

    assert (code, saved["saved"]) == (0, True)
    assert "--home is where Anna lives" in (home / "agents/main/MEMORY.md").read_text()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"INSTAR_MODEL": "gpt-5"}, "INSTAR_MODEL"),
        ({"INSTAR_MODEL_TIMEOUT_S": "soon"}, "INSTAR_MODEL_TIMEOUT_S"),
        ({"INSTAR_MODEL": "openai-chat/x", "INSTAR_MODEL_BASE_URL": "localhost:1"}, "BASE_URL"),
        ({"INSTAR_TELEGRAM_OWNER": "@anna"}, "INSTAR_TELEGRAM_OWNER"),
        ({"INSTAR_TIME_ZONE": "Mars"}, "INSTAR_TIME_ZONE"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(home, settings, word):
    code, problem, _ = instar(home, "chat", "--once", "Hi", settings=WORDS_ALONE | settings)

    assert (code, problem["type"]) == (3, "misconfigured")
    assert word in problem["detail"]
    report = instar(home, "doctor", settings=WORDS_ALONE | settings)
    assert report[0] == 0
    assert report[1]["ok"] is False


def test_a_broken_config_file_is_reported_and_the_rest_of_the_report_stands(home):
    instar(home, "memory", "save", "the bike is green")
    (home / "config.toml").write_text("model = [\n")

    code, report, _ = instar(home, "doctor")

    assert (code, report["ok"]) == (0, False)
    by_name = {check["name"]: check for check in report["checks"]}
    assert "config.toml" in by_name["settings"]["detail"]
    assert by_name["queues"]["status"] == "ok"
    assert report["documents"] == 1


def test_a_secret_in_the_config_file_is_refused_without_showing_it(home):
    home.mkdir()
    (home / "config.toml").write_text('[telegram]\ntoken = "123:verysecret"\n')

    code, problem, said = instar(home, "config", "show")

    assert (code, problem["type"]) == (3, "misconfigured")
    assert "telegram.token" in problem["detail"]
    assert "verysecret" not in json.dumps(problem) + said


def test_a_damaged_index_is_made_again(home):
    instar(home, "memory", "save", "the bike is green")
    for path in (home / "index").rglob("*"):
        if path.is_file():
            path.write_bytes(b"garbage")

    code, answer, _ = instar(home, "memory", "search", "bike")
    report = instar(home, "doctor")[1]

    assert code == 0
    assert [hit["text"] for hit in answer["hits"]] == ["- the bike is green"]
    assert (report["ok"], report["drift"], report["failed"]) == (True, 0, [])


def test_a_bad_file_is_reported_and_stops_no_other(home):
    instar(home, "memory", "save", "the bike is green")
    folder = home / "agents/main/memory"
    folder.mkdir(parents=True)
    (folder / "bad.md").write_bytes(b"caf\xe9 \xff\n")
    (folder / "good.md").write_text("the boat is red\n")

    code, answer, _ = instar(home, "memory", "search", "boat")
    report = instar(home, "doctor")[1]

    assert (code, [hit["document"] for hit in answer["hits"]]) == (0, ["memory/good.md"])
    assert [failed["document"] for failed in report["failed"]] == ["memory/bad.md"]
    assert "UTF-8" in report["failed"][0]["reason"]
    assert len(instar(home, "doctor", "--digest")[1]["digest"]) == 64


def test_a_home_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "home").write_text("a file")

    code, problem, said = instar(tmp_path / "home", "memory", "save", "x")

    assert code in (1, 3)
    assert problem["detail"]
    assert "Traceback" not in said


def test_a_second_server_on_one_home_is_refused(home):
    from instar.adapters.local.home import Home

    with Home(home).serve_lock():
        done = subprocess.run(
            [sys.executable, "-m", "instar", "serve", "--json"],
            env={**WORDS_ALONE, "INSTAR_HOME": str(home), "INSTAR_PORT": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        problem = json.loads(done.stdout)
        assert (done.returncode, problem["type"]) == (1, "conflict")
        assert "--home" in problem["fix"]
        code, saved, _ = instar(home, "memory", "save", "a command works beside a server")
        assert (code, saved["saved"]) == (0, True)


def test_the_digest_tells_homes_apart_and_sees_tombstones(home, tmp_path):
    instar(home, "memory", "save", "the bike is green")
    first = instar(home, "doctor", "--digest")[1]["digest"]
    assert instar(home, "doctor", "--digest")[1]["digest"] == first

    instar(home, "memory", "save", "the boat is red")
    second = instar(home, "doctor", "--digest")[1]["digest"]
    assert second != first
    assert instar(tmp_path / "other", "doctor", "--digest")[1]["digest"] not in (first, second)


# --- webhooks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", Invalid),
        (b"not json", Invalid),
        (b"\xff\xfe", Invalid),
        (b"[]", Invalid),
        (b"{}", Invalid),
        (b'{"update_id": "1"}', Invalid),
        (b'{"update_id": 1, "message": {"text": "x"}}', Invalid),
        (b'{"x": "' + b"x" * 1_048_576 + b'"}', TooLarge),
    ],
    ids=["empty", "words", "bytes", "list", "object", "number", "chat", "size"],
)
def test_a_body_that_is_no_update_is_refused_and_the_next_one_works(home, bot, body, kind):
    with ScriptedModelServer(text_step("Hello.")) as model:
        agent = agent_at(home, environ(model, bot))
        with pytest.raises(kind):
            agent.telegram(body)
        assert agent.counted("turns") == 0

        with at_work(agent.embedded):
            assert agent.telegram(update(2, "Hi")) == 200
            eventually(lambda: bot.sent)


def test_an_unknown_channel_or_account_is_not_found(home):
    from instar.channels.ports import WebhookRequest
    from instar.clock import utc_now

    with ScriptedModelServer() as model:
        agent = agent_at(home, environ(model))
        for channel, account in (("fax", "main"), ("telegram", "other"), ("", "")):
            request = WebhookRequest(account=account, headers={}, body=b"", received_at=utc_now())
            with pytest.raises(NotFound):
                agent.embedded.webhooks.call(channel, request)

        assert agent.counted("turns") == 0


def test_a_poisoned_queue_message_does_not_hold_up_the_rest(home, bot):
    """A body that nobody can read ends among the dead letters; another session goes on."""
    with ScriptedModelServer(text_step("Hello.")) as model:
        agent = agent_at(home, environ(model, bot))
        agent.embedded.stores.turn_queue.put("{}", group="poison", deduplication="p")
        with at_work(agent.embedded):
            agent.telegram(update(1, "Hi"))
            eventually(lambda: bot.sent)

    assert [sent["text"] for sent in bot.sent] == ["Hello."]
