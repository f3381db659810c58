"""A run's specification, which every process gets: the plan as tables, and the code of the components."""
