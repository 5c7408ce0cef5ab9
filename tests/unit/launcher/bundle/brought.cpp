// A library that is not in a system folder (bundle_test.cpp).
int brought() { return 7; }
