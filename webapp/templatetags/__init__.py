"""What templates of Lookout load."""
