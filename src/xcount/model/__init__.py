"""What is asked about: the ensemble, tables of rows, and the readers of model files."""
