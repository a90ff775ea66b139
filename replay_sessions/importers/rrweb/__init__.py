"""The importer `rrweb`: converts recordings of rrweb 2, in the packings that occur, to sessions.

The modules in the order of the data:

    packings       splits a file into recordings, each a list of packed events in time order
    events         unpacks an event to its record; undoes PostHog's and rrweb's own packers
    tree, mutations    rebuild the page as rrweb's player does
    page_writer    writes this page as HTML, at a step
    pages          simplifies the HTML, and finds the name of the element acted on
    player, act_log    play the events to a timeline: actions, addresses, pauses
    typed_texts    finds which typed texts were submitted, and the content of masked texts
    recorded_sessions    converts a timeline to rows, and rows to sessions
"""
