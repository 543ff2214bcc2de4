-- What is forgotten after a while, in bounded batches. Occurrences, gaps, versions and the fence stay for ever.

SET ROLE report_owner;

RESET ROLE;
