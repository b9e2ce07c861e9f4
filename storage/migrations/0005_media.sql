-- Pictures and sounds of a request: what they were, never their bytes.
ALTER TABLE request_data ADD COLUMN media TEXT NOT NULL DEFAULT ''; -- JSON list: param, mime, sha256, bytes, width, height, seconds, frames, tokens, kept, hints; '': none
