"""What templates show: one module for each group of pages, from views of the site to values by name."""
