"""Reports as HTML pages, a module for each section; style and script stand in every page."""
