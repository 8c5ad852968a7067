"""The report as a site: an overview, a page per study, and a page of datasets."""
