"""Conversations over HTTP: say something, wait for the reply, read sessions and events."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from instar.conversation.ports import TurnRecord
from instar.conversation.report import step_rows, tool_calls, turn_result, usage
from instar.errors import NotFound
from instar.ids import TurnId, session_id
from instar.web.auth import GuardedRoute, Here, ticket_for
from instar.web.conversing import ENDED, accept, ended_turn
from instar.web.frames import LARGEST_NUMBER
from instar.web.problems import Json
from instar.web.transcripts import (
    event_json,
    quiet_number,
    session_json,
    summary_json,
    title_of,
)

router = APIRouter(route_class=GuardedRoute, tags=["conversation"])
LONGEST_WAIT_SECONDS = 300
POLL_SECONDS = 0.05
TITLED_SESSIONS = 30
SOCKET_PATH = "/v1/socket"


class NewMessage(BaseModel):
    """What to say."""

    model_config = ConfigDict(extra="forbid")

    text: str


@router.post("/v1/sessions/{session:path}/messages", status_code=202)
async def post_message(
    here: Here,
    session: str,
    message: NewMessage,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_SECONDS)] = 0,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Says something. 202 `{"turn"}`; with `?wait=30` the reply, when it comes in that time: 200
    `{"turn","session","reply","tool_calls","usage"}`. Under an Idempotency-Key a repeat is the same
    message. It waits without holding a thread, which is why it is a coroutine.
    """
    turn = await run_in_threadpool(
        accept, here.services, here.caller, session, message.text, idempotency_key
    )
    ends_at = time.monotonic() + wait
    while wait:
        record = await run_in_threadpool(ended_turn, here.services, turn)
        if record is not None:
            return Json(turn_result(record))
        if time.monotonic() >= ends_at:
            break
        await asyncio.sleep(POLL_SECONDS)
    return Json({"turn": turn}, status_code=202, headers={"location": f"/v1/turns/{turn}"})


@router.post("/v1/sessions/{session:path}/stop")
def stop(here: Here, session: str) -> dict[str, Any]:
    """Asks the running turn of the session to stop: `{"stopping"}`, false when none runs."""
    return {"stopping": here.services.stops.stop(session_id(session))}


@router.get("/v1/sessions")
def list_sessions(here: Here, titles: bool = False) -> dict[str, Any]:
    """All sessions, the most recently used first; `titles` adds the first words of the newest."""
    sessions = here.services.sessions
    rows = [summary_json(summary) for summary in sessions.list()]
    for row in rows[:TITLED_SESSIONS] if titles else ():
        row["title"] = title_of(sessions.load(row["session"]))
    return {"sessions": rows}


@router.get("/v1/sessions/{session:path}/events")
def list_events(
    here: Here,
    session: str,
    after: Annotated[int, Query(ge=0, le=LARGEST_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> dict[str, Any]:
    """The events after number `after`, oldest first; numbers have no gaps."""
    events = here.services.sessions.events(session_id(session), after=after, limit=limit)
    return {"events": [event_json(event) for event in events]}


@router.get("/v1/sessions/{session:path}")
def show_session(here: Here, session: str, full: bool = False) -> dict[str, Any]:
    """The messages of a session; `full` adds tool calls. `after`: from which event to follow."""
    name, sessions = session_id(session), here.services.sessions
    after = quiet_number(sessions, name)
    found = sessions.load(name)
    if not found.version and not found.messages and not sessions.events(name, after=0, limit=1):
        raise NotFound(f"there is no session {session[:80]!r}", fix="GET /v1/sessions lists them.")
    return {"session": name, "messages": session_json(found, full=full), "after": after}


@router.get("/v1/turns/{turn}")
def show_turn(here: Here, turn: str) -> dict[str, Any]:
    """How far a turn is, its rounds, and its reply once it has ended."""
    record = here.services.turns.get(TurnId(turn))
    shown = {
        "turn": record.message.turn,
        "session": record.message.session,
        "state": record.state,
        "attempts": record.attempts,
        "crashes": record.crashes,
        "iterations": step_rows(record),
        "tool_calls": tool_calls(record),
        "usage": usage(record),
    }
    return {**shown, **_ending(record)}


@router.post("/v1/ticket")
def make_ticket(here: Here, request: Request) -> dict[str, str]:
    """A ticket of a single use, good for 30 seconds, and the socket's address to use it at:
    `GET url?ticket=…`.
    """
    url = here.services.socket_url() or SOCKET_PATH
    if url.startswith("/"):
        scheme = "wss" if request.url.scheme == "https" else "ws"
        url = f"{scheme}://{request.headers['host']}{url}"
    return {"ticket": ticket_for(here.caller, here.services, request), "url": url}


def _ending(record: TurnRecord) -> dict[str, Any]:
    if record.state not in ENDED:
        return {}
    if record.state == "failed":
        return {"failure": dict(record.failure or {})}
    return turn_result(record)
