-- Tokens guessed ahead of a text and checked in one batch. They change no text; the
-- two numbers say what guessing cost and what it brought.
ALTER TABLE requests ADD COLUMN drafted_tokens  INTEGER NOT NULL DEFAULT 0; -- guesses that were run
ALTER TABLE requests ADD COLUMN accepted_tokens INTEGER NOT NULL DEFAULT 0; -- of these, those that became text
