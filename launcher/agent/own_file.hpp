// Whether the file that this agent runs from is what its name says.
//
// An agent that was copied to a host is called agent-HASH and is started for months. A loss of
// power or a bad disk may leave a file of the right size with other bytes in it, which runs until a
// damaged page is needed. To let the shell that starts it compute a checksum costs several times as
// much as to read the file here; and an agent that is too damaged to do so does not answer at all.
#pragma once

namespace elasticrun::launcher::agent {

// False also where the name has no hash in it.
bool own_file_is_damaged();

}  // namespace elasticrun::launcher::agent
