"""The scripts that run in a shop's pages beside rrweb's recorder: recorder.js, then questions.js."""
