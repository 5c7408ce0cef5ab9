// A library that lies in no folder of the system (parcel_test.cpp).
int brought() { return 7; }
