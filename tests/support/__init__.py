"""What several folders of tests share. No module here holds a test."""
