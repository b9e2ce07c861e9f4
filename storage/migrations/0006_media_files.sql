-- Files of media, where they are kept; gone with their request.
CREATE TABLE media_files (
    seq   INTEGER NOT NULL REFERENCES requests (seq) ON DELETE CASCADE,
    place INTEGER NOT NULL,  -- in the list request_data.media
    file  BLOB    NOT NULL,
    PRIMARY KEY (seq, place)
);
