// A library that lies in no folder of the system (bundle_test.cpp).
int brought() { return 7; }
