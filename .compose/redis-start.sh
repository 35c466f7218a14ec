# Starts a Redis or a Sentinel: redis-start.sh redis|sentinel NAME
#
# Both write into their configuration which server is the master now, and must find that again after a restart. So the
# file is made once, in the volume, with the name at which other servers reach this one.
set -eu
file=/data/$1.conf name=$2
if ! [ -s "$file" ]; then
  sed "s/@name@/$name/" "/etc/$1.conf" >"$file.new"
  [ "$1 $name" = 'redis redis-1' ] || [ "$1" = sentinel ] || echo 'replicaof redis-1 6379' >>"$file.new"
  mv "$file.new" "$file"
fi
chown -R redis:redis /data
if [ "$1" = sentinel ]; then set -- --sentinel; else set --; fi
exec setpriv --reuid=redis --regid=redis --init-groups redis-server "$file" "$@"
