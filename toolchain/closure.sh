# shellcheck shell=bash
# closure.sh: Debian packages of any release and architecture, unpacked with all that they need. Sourced.

# Downloads packages with all that they depend on, as if nothing were installed, and unpacks them into $folder/root. Nothing is
# installed, and apt checks the signatures.
unpack_closure() {  # ARCHITECTURE SOURCE PACKAGE...
  local architecture=$1 source=$2
  shift 2
  rm -rf "$folder/apt"
  mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/root"
  : >"$folder/apt/status"
  echo "deb $source" >"$folder/apt/sources.list"
  cat >"$folder/apt/apt.conf" <<EOF
APT::Architecture "$architecture";
APT::Architectures "$architecture";
Dir::Etc::SourceList "$folder/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$folder/apt";
Dir::State::Status "$folder/apt/status";
Dir::Cache "$folder/apt";
APT::Sandbox::User "$(id -un)";
APT::Install-Recommends "false";
Acquire::Languages "none";
Debug::NoLocking "true";
EOF
  APT_CONFIG=$folder/apt/apt.conf apt-get -qq update && APT_CONFIG=$folder/apt/apt.conf apt-get -qq -y --download-only install "$@" || return
  for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder/root" || return; done
}
