/**
 * Does the work for each item, at most `width` at a time.
 * @returns the results in the order of the items
 * @throws the first failure, once all begun work has ended; no other work is begun after it
 */
export async function mapAtMost<T, R>(
  width: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const take = async (): Promise<void> => {
    while (next < items.length && failures.length === 0) {
      const index = next;
      next += 1;
      try {
        results[index] = await work(items[index] as T, index);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, take));
  if (failures.length > 0) throw failures[0];
  return results;
}
