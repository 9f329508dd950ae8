fn _later() {}
