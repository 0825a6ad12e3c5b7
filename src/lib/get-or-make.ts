/** What a map has under a key; when that is nothing, what `make` makes, which it has from then on. */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** The same for values that can be made again: a map that has so many begins anew. */
export function getOrMakeAtMost<K, V>(map: Map<K, V>, key: K, make: () => V, most: number): V {
  if (map.size >= most && !map.has(key)) map.clear();
  return getOrMake(map, key, make);
}
