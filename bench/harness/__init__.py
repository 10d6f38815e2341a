"""The benchmark of Surus: Python standard library only.

Reading order: `cli` (what a run does), `workloads` (what is asked of the servers), `peers` and `servers` (who answers),
`check` (is every answer right), `load` (how fast and at what cost), `rounds` (interleaving), `oneoff` (memory, idling,
start-up), `uploads`, `connections`, `reloads` and `pace` (what goes on beside loads), `targets` (pass or fail), `report` and
`plots` (what is written).
"""
