export type Stop = (signal: AbortSignal) => Promise<void>;

/** One part of a running system. */
export interface Part<System> {
  readonly name: string;
  /**
   * Starts it on what those before it have left in `system`. When it rejects it has left nothing running.
   * @returns what stops it, and may flush until its signal aborts; nothing where there is nothing to stop
   */
  start(system: System): Promise<Stop | void> | Stop | void;
}

/**
 * Starts parts one after the other. When one cannot start, those before it are stopped again.
 * @param onUnclean told when they could not be stopped either, of the part that could not start
 * @returns what stops them, the last one first
 */
export async function startParts<System>(
  parts: readonly Part<System>[],
  system: System,
  onUnclean: (error: unknown, part: string) => void,
): Promise<Stop> {
  const running: Stop[] = [];
  let stopping: Promise<void> | null = null;
  const stopAll: Stop = async (signal) => {
    for (const end of running.toReversed()) await end(signal);
  };
  const stop: Stop = (signal) => (stopping ??= stopAll(signal));
  for (const { name, start } of parts) {
    try {
      const end = await start(system);
      if (end !== undefined) running.push(end);
    } catch (error) {
      await stop(AbortSignal.abort()).catch((late: unknown) => onUnclean(late, name));
      throw error;
    }
  }
  return stop;
}
