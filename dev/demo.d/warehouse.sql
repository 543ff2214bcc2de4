-- The data source of the demo: Debian's own package index.
CREATE TABLE package (
    name text NOT NULL,
    version text NOT NULL,
    architecture text NOT NULL,
    section text NOT NULL,
    priority text,
    maintainer text NOT NULL,
    installed_size_kb bigint NOT NULL,
    size_bytes bigint NOT NULL,
    homepage text,
    description text NOT NULL,
    PRIMARY KEY (name, version, architecture)
);
COMMENT ON TABLE package IS 'One package of the index, as `apt-cache dumpavail` prints it.';
