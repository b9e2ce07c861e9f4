-- The request log. Migrations are numbered, are applied in order, each in one
-- transaction, and are never edited once released; PRAGMA user_version holds the
-- number of the last one applied.
--
-- Times are microseconds since 1970-01-01 UTC, durations are milliseconds.

-- One row per request. What List shows stands here; the big values stand in
-- request_data, so that browsing does not read them.
CREATE TABLE requests (
    seq               INTEGER PRIMARY KEY,        -- order of arrival
    id                TEXT    NOT NULL UNIQUE,    -- the id the client was given
    created_at        INTEGER NOT NULL,
    ended_at          INTEGER,                    -- NULL while open or interrupted
    outcome           TEXT    NOT NULL,           -- open, stop, length, cancelled, error, interrupted
    route             TEXT    NOT NULL,           -- "POST /v1/completions", "cli run", …
    client            TEXT    NOT NULL,           -- user agent, never an address
    stream            INTEGER NOT NULL,           -- 1: streamed
    seed              INTEGER NOT NULL,           -- as used, drawn or asked for

    model             TEXT    NOT NULL,
    model_hash        TEXT    NOT NULL,           -- tells model files apart
    backend           TEXT    NOT NULL,           -- cpu, ref, …
    device            TEXT    NOT NULL,
    numerics          TEXT    NOT NULL,           -- exact, fast
    kernels           TEXT    NOT NULL,           -- version of the kernel set

    error_code        TEXT    NOT NULL DEFAULT '',
    error_message     TEXT    NOT NULL DEFAULT '',
    prompt_tokens     INTEGER NOT NULL DEFAULT 0, -- the whole prompt
    cached_tokens     INTEGER NOT NULL DEFAULT 0, -- of these, already in the KV cache
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    queue_ms          REAL    NOT NULL DEFAULT 0,
    prefill_ms        REAL    NOT NULL DEFAULT 0,
    decode_ms         REAL    NOT NULL DEFAULT 0,
    first_token_ms    REAL    NOT NULL DEFAULT 0, -- from arrival to the first token
    sample_ms         REAL    NOT NULL DEFAULT 0, -- inside the sampling chain

    body_bytes        INTEGER NOT NULL DEFAULT 0, -- size of the body as received, kept or not
    kept              TEXT    NOT NULL,           -- 'all'; 'no text': left out by setting; 'too large': left out for size
    prompt            TEXT    NOT NULL DEFAULT '',
    text              TEXT    NOT NULL DEFAULT ''  -- the answer
);

-- Retention by age; also the narrow index that counting rows reads.
CREATE INDEX requests_created_at ON requests (created_at);

-- Rows left open by a process that died are found at start without a scan.
CREATE INDEX requests_open ON requests (seq) WHERE outcome = 'open';

-- The big values of a request; goes with its request.
CREATE TABLE request_data (
    seq    INTEGER PRIMARY KEY REFERENCES requests (seq) ON DELETE CASCADE,
    params TEXT NOT NULL,  -- resolved parameters: JSON list of {"name", "value", "origin"}
    body   BLOB,           -- bytes as received
    tokens BLOB            -- generated tokens with log-probabilities, format in tokens.go
);
