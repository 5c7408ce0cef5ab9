// A program that needs the library of brought.cpp and does not record where it is
// (bundle_test.cpp).
int brought();

int main() { return brought(); }
