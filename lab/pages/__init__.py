"""How quickly a Nimbus's pages answer: many topologies, many browsers. See `python -m lab.pages --help`."""
