// The functions of Kerberos that libssh names, for a program that logs in by key alone: each says
// that there is nothing. The real ones exist as shared libraries only, which many machines lack.
// libssh calls none of them in the ways to log in that session.cpp uses.

#define ELASTICRUN_NO_GSSAPI(function) \
  extern "C" unsigned gss_##function() { return 16u << 16; }  // GSS_S_UNAVAILABLE

ELASTICRUN_NO_GSSAPI(accept_sec_context)
ELASTICRUN_NO_GSSAPI(acquire_cred)
ELASTICRUN_NO_GSSAPI(add_oid_set_member)
ELASTICRUN_NO_GSSAPI(create_empty_oid_set)
ELASTICRUN_NO_GSSAPI(display_name)
ELASTICRUN_NO_GSSAPI(display_status)
ELASTICRUN_NO_GSSAPI(get_mic)
ELASTICRUN_NO_GSSAPI(import_name)
ELASTICRUN_NO_GSSAPI(indicate_mechs)
ELASTICRUN_NO_GSSAPI(init_sec_context)
ELASTICRUN_NO_GSSAPI(inquire_cred)
ELASTICRUN_NO_GSSAPI(inquire_cred_by_mech)
ELASTICRUN_NO_GSSAPI(release_buffer)
ELASTICRUN_NO_GSSAPI(release_cred)
ELASTICRUN_NO_GSSAPI(release_name)
ELASTICRUN_NO_GSSAPI(release_oid_set)
ELASTICRUN_NO_GSSAPI(test_oid_set_member)
ELASTICRUN_NO_GSSAPI(verify_mic)

// Names of kinds of names.
const void* hostbased_service asm("GSS_C_NT_HOSTBASED_SERVICE") = nullptr;
const void* user_name asm("GSS_C_NT_USER_NAME") = nullptr;
