"""Changes of a query between two starts, as far as the files of its checkpoint show them."""
