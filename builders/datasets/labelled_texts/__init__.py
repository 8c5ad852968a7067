"""The dataset `labelled_texts`."""
