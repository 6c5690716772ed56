"""What benchmarks and experiments share: data, models, runs and their records, tables, pictures."""
