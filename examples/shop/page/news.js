// What the shop heard from Payrelay by webhooks, newest first.

const WORDS = {
  "customer.created": "Your card was approved, and is kept",
  "customer.removed": "Your card was removed",
  "checkout.completed": "You finished the gateway's page",
  "checkout.notified": "The gateway reported a hold, which its capture has to prove",
  "checkout.cancelled": "You came back without finishing",
  "checkout.failed": "The gateway did not take the card",
  "checkout.expired": "The gateway's page has ended",
  "operation.succeeded charge": "Your payment arrived",
  "operation.succeeded capture": "Your payment arrived",
  "operation.succeeded refund": "Your money goes back",
  "operation.succeeded cancel": "Your membership was ended, as you asked",
  "payment.charged_back": "Your bank took the payment back",
  "payment.refund_failed": "Your money could not be given back yet. We look into it",
  "order.paid_again": "An order was paid once more. We look into it",
  "operation.declined": "Your payment was declined",
  "operation.unknown": "Nobody knows yet whether it was done",
  "subscription.updated": "Your membership has changed",
  "subscription.installment_paid": "A month of the club was paid",
  "subscription.installment_failed": "A month of the club could not be paid",
  "subscription.completed": "Your membership has come to its end",
  "subscription.stopped": "Your membership has ended",
};

/** Shows the news. A phone that was away meanwhile finds them when it comes back. */
export function showNews(news) {
  if (news.length === 0) return;
  const place = document.getElementById("news");
  place.replaceChildren(
    ...[...news].reverse().map(({ type, timestamp, data }) => {
      const line = document.createElement("li");
      line.className = /failed|declined/.test(type) ? "bad" : "";
      const time = document.createElement("time");
      time.dateTime = timestamp;
      time.textContent = new Date(timestamp).toLocaleTimeString();
      const amount = /^(operation|payment)\./.test(type) && data.amount ? `, ${data.currency} ${data.amount}` : "";
      line.append(time, ` ${WORDS[`${type} ${data.kind}`] ?? WORDS[type] ?? type}${amount}`);
      return line;
    }),
  );
}
