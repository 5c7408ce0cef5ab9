// Checks that the file which this agent runs from is what its name says.
//
// An agent that was copied to a host is called agent-HASH and is started again and again for
// months. A loss of power or a bad disk may leave a file of the right size with other bytes in it,
// which runs until a damaged page is needed. Letting the shell that starts the agent compute a
// checksum costs several times as much as reading the file here, and an agent that is too damaged
// to check itself does not answer at all.
#pragma once

namespace elasticrun::launcher::agent {

// Also false if the name has no hash in it.
bool own_file_is_damaged();

// Removes the file if it was copied for this one start, by srun: then it is called agent-HASH.WORD.
void remove_own_file_of_one_use();

}  // namespace elasticrun::launcher::agent
