"""Importer `rrweb`: recordings of rrweb 2, in the packings that occur, become sessions.

The modules in the order of the data:

    packings       a file -> recordings, each a list of packed events in the order of time
    events         a packed event -> its record, PostHog's and rrweb's own packers undone
    tree, mutations    the page as rrweb's player would rebuild it
    page_writer    that page -> HTML, at a step
    pages          HTML -> simplified page, and the name of what was acted on
    player, act_log    events -> a timeline: what was done, addresses, pauses
    typed_texts    which typed texts were submitted, and what masked ones were
    recorded_sessions    a timeline -> rows -> sessions
"""
