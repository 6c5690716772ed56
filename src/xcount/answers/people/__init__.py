"""People: where what is sensitive is, and how often groups get a decision."""
