-- A device can fail while a text is made. The text goes on elsewhere; backend and device
-- say where it was ended, and this what happened. Empty: nothing did.
ALTER TABLE requests ADD COLUMN moved TEXT NOT NULL DEFAULT '';
