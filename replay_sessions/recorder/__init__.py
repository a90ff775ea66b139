"""Records visits to a shop: rrweb's own recorder in its pages, and a collector that loses nothing it has acknowledged.

    a shop's page ─► rrweb's `record` ─► snippet (ids, consent, masks, queue) ─► POST ─► collector ─► DIR/SESSION.jsonl

The modules in the order of the data:

    rrweb_bundle   rrweb's recorder, fetched by npm at first use; it is not part of this project
    snippet/       what runs in a shop's pages beside it
    batches        what a page posts -> a batch of events, checked
    session_file   the append-only file of one session
    journal        batches of many sessions at once -> their files, on the disk before they are acknowledged
    collector      the same over HTTP: who may post, and how much
    serving        runs it until Ctrl-C

    shop-r1 record --out recordings
    shop-r1 import rrweb recordings --terminate-at-end --out stores/mine
"""
