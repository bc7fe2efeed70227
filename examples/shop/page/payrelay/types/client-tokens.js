/** Client tokens: short-lived credentials for apps. */
export {};
