-- Plugins that took part in choosing a request's tokens.
ALTER TABLE request_data ADD COLUMN plugins     TEXT NOT NULL DEFAULT ''; -- JSON list: name, version, hash, outcome, cost per token, tokens changed; '': none ran
ALTER TABLE request_data ADD COLUMN plugin_meta TEXT NOT NULL DEFAULT ''; -- JSON object: what they left, JSON texts by "plugin.key"
