"""The live socket: frames in, numbered events out, to any number of sockets at once.

    ticket, Origin -> frames -> use cases (in threads)
                   -> follower: events after the last sent one, of every followed session

Events are read from the store, never from memory: what a socket sends is what stands there, in
order, without gaps or doubles, whichever process wrote it.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool

from instar.access.keyring import TICKET
from instar.conversation.ports import Event
from instar.errors import Forbidden, InstarError, Refused
from instar.ids import SessionId, session_id
from instar.web.auth import TicketHolder, require_own_origin
from instar.web.conversing import accept
from instar.web.frames import (
    Frame,
    MessageFrame,
    ResumeFrame,
    StopFrame,
    error_frame,
    parsed_frame,
)
from instar.web.problems import problem_response
from instar.web.scopes import CHAT, FOLLOW, opens
from instar.web.services import Services
from instar.web.transcripts import CLOSING_KINDS, event_json, last_number

log = logging.getLogger(__name__)
router = APIRouter()
BUSY_SECONDS = 0.03
IDLE_SECONDS = 0.15
CHECK_SECONDS = 5.0
FOLLOWED_SESSIONS = 20
GOING_AWAY, REFUSED, TOO_BIG = 1001, 1008, 1009


@router.websocket("/v1/socket")
async def live(websocket: WebSocket) -> None:
    """One socket from its ticket to its end."""
    services: Services = websocket.app.state.services
    try:
        if "origin" in websocket.headers:
            require_own_origin(websocket)
        ticket = websocket.query_params.get("ticket", "")
        data = await run_in_threadpool(services.keyring.redeem, TICKET, ticket)
    except InstarError as error:
        await websocket.send_denial_response(problem_response(error))
        return
    await websocket.accept()
    await LiveSocket(websocket, services, TicketHolder.of(data)).run()


class LiveSocket:
    """One open socket: what it follows, and how far it is with each session."""

    def __init__(self, websocket: WebSocket, services: Services, holder: TicketHolder) -> None:
        self._websocket = websocket
        self._services = services
        self._holder = holder
        self._sent: dict[SessionId, int] = {}
        self._busy: set[SessionId] = set()
        self._wake = asyncio.Event()
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Until the client goes, or its key or browser session ends."""
        tasks = [asyncio.create_task(part()) for part in (self._read, self._follow, self._guard)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(ended, Exception) and not isinstance(ended, WebSocketDisconnect):
                    log.warning("socket_ended", exc_info=ended)

    # --- frames in ----------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                text = await self._websocket.receive_text()
            except (WebSocketDisconnect, KeyError):  # gone, or bytes instead of text
                return
            await self._answer(text)

    async def _answer(self, text: str) -> None:
        frame: Frame | None = None
        try:
            frame = parsed_frame(text)
            await self._handle(frame)
        except InstarError as error:
            await self._send([error_frame(error, frame)])

    async def _handle(self, frame: Frame) -> None:
        session = session_id(frame.session)
        needed = FOLLOW if isinstance(frame, ResumeFrame) else CHAT
        if not opens(self._holder.caller.scopes, needed):
            raise Forbidden(f"a {frame.kind} frame needs the scope {' or '.join(sorted(needed))}")
        if isinstance(frame, StopFrame):
            await run_in_threadpool(self._services.stops.stop, session)
            return
        if session not in self._sent and len(self._sent) >= FOLLOWED_SESSIONS:
            raise Refused(f"one socket follows at most {FOLLOWED_SESSIONS} sessions")
        if isinstance(frame, MessageFrame):
            await self._accept(frame, session)
        else:
            last = await run_in_threadpool(last_number, self._services.sessions, session)
            self._sent[session] = min(frame.after, last)
        self._wake.set()

    async def _accept(self, frame: MessageFrame, session: SessionId) -> None:
        """Accepts a message, following the session from before it."""
        if session not in self._sent:
            last = await run_in_threadpool(last_number, self._services.sessions, session)
            self._sent.setdefault(session, last)
        await run_in_threadpool(self._holder.check, self._services)
        turn = await run_in_threadpool(
            accept, self._services, self._holder.caller, session, frame.text, frame.id
        )
        self._busy.add(session)
        if frame.receipt:
            receipt = {"kind": "accepted", "session": session, "id": frame.id, "turn": turn}
            await self._send([receipt])

    # --- events out ---------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            for session in tuple(self._sent):
                await self._push(session)
            try:
                pause = BUSY_SECONDS if self._busy else IDLE_SECONDS
                await asyncio.wait_for(self._wake.wait(), pause)
            except TimeoutError:
                pass
            self._wake.clear()

    async def _push(self, session: SessionId) -> None:
        """Sends what is new in a session; a resume that came meanwhile has the last word."""
        after = self._sent[session]
        try:
            events = await run_in_threadpool(self._services.sessions.events, session, after=after)
        except InstarError:  # the store is busy: the next look finds the same events
            return
        if not events or self._sent[session] != after:
            return
        self._sent[session] = events[-1].n
        self._note(session, events)
        await self._send(await run_in_threadpool(_shown, events))

    def _note(self, session: SessionId, events: Sequence[Event]) -> None:
        """A session is busy from a message or the start of a turn to its end: looked at often."""
        if events[-1].kind in CLOSING_KINDS:
            self._busy.discard(session)
        elif events[-1].kind != "notice":
            self._busy.add(session)

    async def _send(self, frames: Sequence[dict[str, Any]]) -> None:
        async with self._sending:
            for frame in frames:
                await self._websocket.send_text(json.dumps(frame))

    # --- the end ------------------------------------------------------------------------------

    async def _guard(self) -> None:
        """Closes the socket once its key was revoked or its browser signed out."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await run_in_threadpool(self._holder.check, self._services)
            except Refused:
                await self._websocket.close(REFUSED)
                return
            except InstarError:  # the store is busy: asked again soon
                continue


def _shown(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [event_json(event) for event in events]
