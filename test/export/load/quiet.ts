const quiet = (): void => undefined;

/** For whom nothing that a load tells is of interest. */
export const QUIET = {
  isFirstRound: true,
  onProgress: quiet,
  onProblem: quiet,
  onReject: quiet,
  onUnknown: quiet,
  onWithoutTable: quiet,
};
