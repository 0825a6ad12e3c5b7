/** The value of a key; a missing one is made and added. */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** As `getOrMake`, for values that can be made again: a map of `most` keys is cleared first. */
export function getOrMakeAtMost<K, V>(map: Map<K, V>, key: K, make: () => V, most: number): V {
  if (map.size >= most && !map.has(key)) map.clear();
  return getOrMake(map, key, make);
}
