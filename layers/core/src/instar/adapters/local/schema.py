"""The tables of the embedded database, as numbered migrations.

Position in the tuple is the version: a migration that was published never changes, a new one goes
to the end. Moments are whole microseconds since 1970 UTC; JSON is kept as text.
"""

_MEMORY = """
CREATE TABLE ledger (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    checkpoint TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    before TEXT,
    digest TEXT NOT NULL,
    after TEXT,
    state TEXT NOT NULL,
    session TEXT,
    turn TEXT,
    call TEXT,
    effect TEXT,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL
) STRICT;
CREATE INDEX ledger_by_key ON ledger (key, sequence);
CREATE INDEX ledger_by_turn ON ledger (turn, sequence) WHERE turn IS NOT NULL;
CREATE INDEX ledger_begun ON ledger (sequence) WHERE state = 'begun';
CREATE UNIQUE INDEX ledger_by_effect ON ledger (effect)
    WHERE effect IS NOT NULL AND state <> 'abandoned';
CREATE TABLE tombstones (
    agent TEXT NOT NULL,
    mark TEXT NOT NULL,
    PRIMARY KEY (agent, mark)
) STRICT, WITHOUT ROWID;
CREATE TABLE manifest (
    key TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    revision TEXT NOT NULL,
    state TEXT NOT NULL,
    generation TEXT NOT NULL,
    passages INTEGER NOT NULL,
    vectors INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

_CONVERSATION = """
CREATE TABLE sessions (
    session TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE messages (
    session TEXT NOT NULL,
    n INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    session TEXT NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE turns (
    turn TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    digest TEXT NOT NULL,
    message TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    leased_until INTEGER,
    reply TEXT,
    failure TEXT,
    stop_requested INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX turns_running ON turns (session) WHERE state = 'running';
CREATE TABLE steps (
    turn TEXT NOT NULL,
    number INTEGER NOT NULL,
    assistant TEXT NOT NULL,
    results TEXT,
    usage TEXT NOT NULL,
    PRIMARY KEY (turn, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    reply TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    claimed_until INTEGER,
    uncertain INTEGER NOT NULL DEFAULT 0,
    detail TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX outbox_unsent ON outbox (sequence) WHERE state IN ('pending', 'sending');
CREATE TABLE queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    member TEXT NOT NULL,
    body TEXT NOT NULL,
    visible_at INTEGER NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0,
    receipt TEXT,
    dead_at INTEGER
) STRICT;
CREATE INDEX queue_living ON queue (queue, member, id) WHERE dead_at IS NULL;
CREATE INDEX queue_dead ON queue (queue, id) WHERE dead_at IS NOT NULL;
CREATE TABLE queue_seen (
    queue TEXT NOT NULL,
    deduplication TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, deduplication)
) STRICT, WITHOUT ROWID;
"""

_ACCESS = """
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    tools TEXT,
    created_at INTEGER NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE grants (
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (kind, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE calls (
    name TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    status INTEGER,
    body TEXT
) STRICT;
"""

MIGRATIONS: tuple[str, ...] = (_MEMORY, _CONVERSATION, _ACCESS)
