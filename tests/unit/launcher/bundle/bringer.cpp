// A program that needs such a library and does not say where it lies (bundle_test.cpp).
int brought();

int main() { return brought(); }
